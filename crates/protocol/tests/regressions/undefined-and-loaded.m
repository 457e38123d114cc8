-- expect: violation
-- A load of what a rule has undefined: nobody can have read it.
const PROCS: 2;
--@ data Value
type Proc: scalarset(PROCS); Value: 0..1; Block: 0..0;
var memory: array[Block] of Value; cache: array[Proc] of array[Block] of Value; full: array[Proc] of boolean;
ruleset p: Proc; a: Block do
  --@ load proc=p block=a from=cache[p][a]
  rule "load" full[p] ==> begin end;
  rule "lose" full[p] ==> begin undefine cache[p][a]; end;
  rule "fetch" !full[p] ==> begin cache[p][a] := memory[a]; full[p] := true; end;
  ruleset v: Value do
    --@ store proc=p block=a
    rule "store" !exists q: Proc do full[q] end ==> begin memory[a] := v; end;
  end;
end;
startstate begin
  for a: Block do clear memory[a]; for p: Proc do undefine cache[p][a]; full[p] := false; end; end;
end;
