-- expect: unproved
-- Loads but no stores: every load of a run finds an initial value, and nothing is proved.
const PROCS: 2; VALUES: 2; BLOCKS: 2;
--@ data Value
type Proc: scalarset(PROCS); Value: scalarset(VALUES); Block: scalarset(BLOCKS);
var memory: array[Block] of Value; cache: array[Proc] of array[Block] of Value;
ruleset p: Proc; a: Block do
  --@ load proc=p block=a from=cache[p][a]
  rule "load" !isundefined(cache[p][a]) ==> begin end;
  ruleset b: Block do rule "fetch" true ==> begin cache[p][a] := memory[b]; end; end;
end;
ruleset v: Value do startstate begin for a: Block do memory[a] := v; for p: Proc do undefine cache[p][a]; end; end; end; end;
