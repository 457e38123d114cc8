-- expect: violation
-- The start state holds two initial values, and both are loaded.
const PROCS: 2; VALUES: 2;
--@ data Value
type Proc: scalarset(PROCS); Value: 0..1; 
var memory: Value; other: Value;
ruleset p: Proc do
  --@ load proc=p from=memory
  rule "load memory" true ==> begin end;
  --@ load proc=p from=other
  rule "load other" true ==> begin end;
end;
ruleset p: Proc; v: Value do
    --@ store proc=p
    rule "store" true ==> begin memory := v; other := v; end;
end;
startstate begin memory := 0; other := 1; end;
