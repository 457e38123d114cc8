-- Write-through caches with store buffers: total store order.
--
-- A processor's stores wait in its buffer, from which its own loads are served; a store that leaves the
-- buffer goes to the memory and invalidates the other caches. Loads overtake the stores before them, so
-- store buffering shows: each of two processors stores, and then loads the other's block too early.
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

function Buffered(p: Proc; a: Block): boolean;
begin
  return exists i: 0..DEPTH-1 do i < buffer[p].length & buffer[p].entry[i].block = a end;
end;

ruleset p: Proc do
  ruleset a: Block do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load from cache"
      cache[p][a].valid & !Buffered(p, a)
    ==>
    begin
    end;

    ruleset i: 0..DEPTH-1 do
      --@ load proc=p block=a from=buffer[p].entry[i].data
      rule "load from buffer"
        i < buffer[p].length & buffer[p].entry[i].block = a
        & !exists j: 0..DEPTH-1 do j > i & j < buffer[p].length & buffer[p].entry[j].block = a end
      ==>
      begin
      end;
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
        if q = p then
          if cache[q][first.block].valid then
            cache[q][first.block].data := first.data;
          end;
        else
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
