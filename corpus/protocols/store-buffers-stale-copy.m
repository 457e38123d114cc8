-- store-buffers-drained.m, but a store that leaves the buffer does not update the cache of its own
-- processor, which loads what it has overwritten.
-- expect: violation

const
  PROCS: 2;
  BLOCKS: 2;
  VALUES: 2;
  DEPTH: 2;

--@ data Value
type
  Proc: scalarset(PROCS);
  Block: scalarset(BLOCKS);
  Value: scalarset(VALUES);
  Line: record
    valid: boolean;
    data: Value;
  end;
  Entry: record
    block: Block;
    data: Value;
  end;
  Buffer: record
    length: 0..DEPTH;
    entry: array[0..DEPTH-1] of Entry;
  end;

var
  cache: array[Proc] of array[Block] of Line;
  buffer: array[Proc] of Buffer;
  memory: array[Block] of Value;

ruleset p: Proc do
  ruleset a: Block do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load from cache"
      cache[p][a].valid & buffer[p].length = 0
    ==>
    begin
    end;

    rule "fill"
      !cache[p][a].valid
    ==>
    begin
      cache[p][a].valid := true;
      cache[p][a].data := memory[a];
    end;

    rule "evict"
      cache[p][a].valid
    ==>
    begin
      cache[p][a].valid := false;
      undefine cache[p][a].data;
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        buffer[p].length < DEPTH
      ==>
      begin
        alias b: buffer[p] do
          b.entry[b.length].block := a;
          b.entry[b.length].data := v;
          b.length := b.length + 1;
        end;
      end;
    end;
  end;

  --@ serialize block=buffer[p].entry[0].block from=buffer[p].entry[0].data
  rule "drain"
    buffer[p].length > 0
  ==>
  begin
    alias b: buffer[p]; first: buffer[p].entry[0] do
      memory[first.block] := first.data;
      for q: Proc do
        if q != p then
          cache[q][first.block].valid := false;
          undefine cache[q][first.block].data;
        end;
      end;
      for i: 0..DEPTH-1 do
        if i < DEPTH-1 then
          b.entry[i] := b.entry[i+1];
        end;
      end;
      undefine b.entry[DEPTH-1];
      b.length := b.length - 1;
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    undefine buffer;
    for p: Proc do
      buffer[p].length := 0;
      for a: Block do
        cache[p][a].valid := false;
        undefine cache[p][a].data;
      end;
    end;
    for a: Block do
      memory[a] := v;
    end;
  end;
end;
