-- Lazy caching (Afek, Brown and Merritt 1993): stores wait in an out-queue, updates in an in-queue.
--
-- A memory-write takes a processor's oldest store to the memory and into every in-queue, marked in its
-- own. A processor loads from its cache, which may be stale, but only when none of its own stores is
-- on its way. The order of the memory-writes, not that of the stores, is the order of the stores.
-- expect: consistent

const
  PROCS: 2;
  BLOCKS: 2;
  VALUES: 2;
  OUT: 1;
  IN: 2;

--@ data Value
type
  Proc: scalarset(PROCS);
  Block: scalarset(BLOCKS);
  Value: scalarset(VALUES);
  Entry: record
    block: Block;
    own: boolean;
    data: Value;
  end;
  OutQueue: record
    length: 0..OUT;
    entry: array[0..OUT-1] of Entry;
  end;
  InQueue: record
    length: 0..IN;
    entry: array[0..IN-1] of Entry;
  end;
  Line: record
    valid: boolean;
    data: Value;
  end;

var
  cache: array[Proc] of array[Block] of Line;
  outgoing: array[Proc] of OutQueue;
  incoming: array[Proc] of InQueue;
  memory: array[Block] of Value;

procedure PushIn(p: Proc; a: Block; own: boolean; v: Value);
begin
  alias queue: incoming[p] do
    queue.entry[queue.length].block := a;
    queue.entry[queue.length].own := own;
    queue.entry[queue.length].data := v;
    queue.length := queue.length + 1;
  end;
end;

function OwnOnItsWay(p: Proc): boolean;
begin
  return outgoing[p].length > 0
    | exists i: 0..IN-1 do i < incoming[p].length & incoming[p].entry[i].own end;
end;

ruleset p: Proc do
  ruleset a: Block do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      cache[p][a].valid & !OwnOnItsWay(p)
    ==>
    begin
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        outgoing[p].length < OUT
      ==>
      begin
        alias queue: outgoing[p] do
          queue.entry[queue.length].block := a;
          queue.entry[queue.length].own := true;
          queue.entry[queue.length].data := v;
          queue.length := queue.length + 1;
        end;
      end;
    end;

    rule "memory read"
      !cache[p][a].valid & incoming[p].length < IN
    ==>
    begin
      PushIn(p, a, false, memory[a]);
    end;

    rule "cache invalidate"
      cache[p][a].valid
    ==>
    begin
      cache[p][a].valid := false;
      undefine cache[p][a].data;
    end;
  end;

  --@ serialize block=outgoing[p].entry[0].block from=outgoing[p].entry[0].data
  rule "memory write"
    outgoing[p].length > 0 & forall q: Proc do incoming[q].length < IN end
  ==>
  begin
    alias queue: outgoing[p]; first: outgoing[p].entry[0] do
      memory[first.block] := first.data;
      for q: Proc do
        PushIn(q, first.block, q = p, first.data);
      end;
      for i: 0..OUT-1 do
        if i < OUT-1 then
          queue.entry[i] := queue.entry[i+1];
        end;
      end;
      undefine queue.entry[OUT-1];
      queue.length := queue.length - 1;
    end;
  end;

  rule "cache update"
    incoming[p].length > 0
  ==>
  begin
    alias queue: incoming[p]; first: incoming[p].entry[0] do
      cache[p][first.block].valid := true;
      cache[p][first.block].data := first.data;
      for i: 0..IN-1 do
        if i < IN-1 then
          queue.entry[i] := queue.entry[i+1];
        end;
      end;
      undefine queue.entry[IN-1];
      queue.length := queue.length - 1;
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    undefine outgoing;
    undefine incoming;
    for p: Proc do
      outgoing[p].length := 0;
      incoming[p].length := 0;
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
