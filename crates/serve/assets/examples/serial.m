-- Serial memory: every load and store reaches the one memory at once.
-- expect: consistent

const
  PROCS: 2;
  BLOCKS: 2;
  VALUES: 2;

--@ data Value
type
  Proc: scalarset(PROCS);
  Block: scalarset(BLOCKS);
  Value: scalarset(VALUES);

var
  memory: array[Block] of Value;

ruleset p: Proc; a: Block do
  --@ load proc=p block=a from=memory[a]
  rule "load"
    true
  ==>
  begin
  end;

  ruleset v: Value do
    --@ store proc=p block=a
    rule "store"
      true
    ==>
    begin
      memory[a] := v;
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      memory[a] := v;
    end;
  end;
end;
