-- Serial memory with a write buffer of one entry in front of it, which loads do not look into:
-- a processor misses its own store.
-- expect: violation

const
  PROCS: 2;
  BLOCKS: 2;
  VALUES: 2;

--@ data Value
type
  Proc: scalarset(PROCS);
  Block: scalarset(BLOCKS);
  Value: scalarset(VALUES);
  Buffer: record
    full: boolean;
    block: Block;
    data: Value;
  end;

var
  memory: array[Block] of Value;
  buffer: array[Proc] of Buffer;

ruleset p: Proc do
  ruleset a: Block do
    --@ load proc=p block=a from=memory[a]
    rule "load"
      true
    ==>
    begin
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        !buffer[p].full
      ==>
      begin
        buffer[p].full := true;
        buffer[p].block := a;
        buffer[p].data := v;
      end;
    end;
  end;

  rule "drain"
    buffer[p].full
  ==>
  begin
    memory[buffer[p].block] := buffer[p].data;
    buffer[p].full := false;
    undefine buffer[p].block;
    undefine buffer[p].data;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      memory[a] := v;
    end;
    for p: Proc do
      undefine buffer[p];
      buffer[p].full := false;
    end;
  end;
end;
