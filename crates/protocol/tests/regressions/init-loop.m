-- expect: consistent
-- A loop over the data type in a start state: the last round counts.
const PROCS: 2; BLOCKS: 1; VALUES: 2;
--@ data Value
type Proc: scalarset(PROCS); Block: scalarset(BLOCKS); Value: scalarset(VALUES);
var memory: array[Block] of Value;
ruleset p: Proc; a: Block do
  --@ load proc=p block=a from=memory[a]
  rule "load" true ==> begin end;
  ruleset v: Value do
    --@ store proc=p block=a
    rule "store" true ==> begin memory[a] := v; end;
  end;
end;
startstate
begin
  for a: Block do for v: Value do memory[a] := v; end; end;
end;
