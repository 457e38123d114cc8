-- expect: undecided
-- A load of what a rule has cleared: the value is the least of its type, which happens to be the initial one.
const PROCS: 2;
--@ data Value
type Proc: scalarset(PROCS); Value: 0..1; Block: 0..0;
var memory: array[Block] of Value; cache: array[Proc] of array[Block] of Value; stored: boolean;
ruleset p: Proc; a: Block do
  --@ load proc=p block=a from=cache[p][a]
  rule "load" !isundefined(cache[p][a]) ==> begin end;
  rule "reset" !stored & !isundefined(cache[p][a]) ==> begin clear cache[p][a]; end;
  rule "fetch" isundefined(cache[p][a]) ==> begin cache[p][a] := memory[a]; end;
  ruleset v: Value do
    --@ store proc=p block=a
    rule "store" !stored & forall q: Proc do isundefined(cache[q][a]) end ==> begin memory[a] := v; stored := true; end;
  end;
end;
startstate begin
  for a: Block do clear memory[a]; for p: Proc do undefine cache[p][a]; end; end;
  stored := false;
end;
