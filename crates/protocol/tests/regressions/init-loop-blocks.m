-- expect: consistent
-- The same with blocks.
const PROCS: 2; VALUES: 2;
--@ data Value
type Proc: scalarset(PROCS); Value: scalarset(VALUES);
var memory: Value; buf: array[0..7] of Value;
ruleset p: Proc do
  --@ load proc=p from=memory
  rule "load" true ==> begin end;
  ruleset v: Value do
    --@ store proc=p
    rule "store" true ==> begin memory := v; for i: 0..7 do buf[i] := v; end; end;
  end;
  rule "copy" !isundefined(buf[0]) ==> begin memory := buf[0]; end;
end;
startstate begin for v: Value do memory := v; end; for i: 0..7 do undefine buf[i]; end; end;
