-- MOESI on a snooping bus with split transactions and write-back buffers.
--
-- As mesi.m, with an owned state: a dirty line is shared without writing the memory, and its owner
-- answers requests for it.
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
  -- Waiting for data to be shared, exclusive, modified or (after a dirty write-back) owned.
  State: enum { I, S, E, O, M, IS, IE, IM, IO };
  Line: record
    state: State;
    data: Value;
  end;
  Buffer: record
    full: boolean;
    data: Value;
  end;

var
  cache: array[Proc] of array[Block] of Line;
  writeback: array[Proc] of array[Block] of Buffer;
  -- Data on its way to a cache.
  reply: array[Proc] of array[Block] of Buffer;
  busy: array[Block] of boolean;
  memory: array[Block] of Value;

procedure Fill(var b: Buffer; v: Value);
begin
  b.full := true;
  b.data := v;
end;

procedure Drop(var b: Buffer);
begin
  b.full := false;
  undefine b.data;
end;

function Held(p: Proc; a: Block): boolean;
begin
  return exists q: Proc do q != p & cache[q][a].state != I end;
end;

-- Sends the newest value of a block to a cache. A dirty line stays its owner's; what was being
-- written back is taken over, and its new holder is its owner.
procedure Fetch(p: Proc; a: Block; toWrite: boolean);
begin
  if toWrite then
    cache[p][a].state := IM;
  elsif Held(p, a) then
    cache[p][a].state := IS;
  else
    cache[p][a].state := IE;
  end;
  Fill(reply[p][a], memory[a]);
  for q: Proc do
    if cache[q][a].state = M | cache[q][a].state = O then
      reply[p][a].data := cache[q][a].data;
      cache[q][a].state := O;
    elsif cache[q][a].state = E then
      cache[q][a].state := S;
    end;
    if writeback[q][a].full then
      reply[p][a].data := writeback[q][a].data;
      Drop(writeback[q][a]);
      if !toWrite then
        cache[p][a].state := IO;
      end;
    end;
  end;
end;

procedure InvalidateOthers(p: Proc; a: Block);
begin
  for q: Proc do
    if q != p then
      cache[q][a].state := I;
      undefine cache[q][a].data;
    end;
    -- An upgrade overwrites what another cache was about to write back.
    if writeback[q][a].full then
      Drop(writeback[q][a]);
    end;
  end;
end;

ruleset p: Proc; a: Block do
  alias line: cache[p][a] do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      line.state = S | line.state = E | line.state = O | line.state = M
    ==>
    begin
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        line.state = E | line.state = M
      ==>
      begin
        line.data := v;
        line.state := M;
      end;
    end;

    rule "request to read"
      line.state = I & !busy[a]
    ==>
    begin
      busy[a] := true;
      Fetch(p, a, false);
    end;

    rule "request to write"
      line.state = I & !busy[a]
    ==>
    begin
      busy[a] := true;
      Fetch(p, a, true);
      InvalidateOthers(p, a);
    end;

    rule "upgrade"
      (line.state = S | line.state = O) & !busy[a]
    ==>
    begin
      line.state := M;
      InvalidateOthers(p, a);
    end;

    rule "data arrives"
      reply[p][a].full
    ==>
    begin
      line.data := reply[p][a].data;
      switch line.state
        case IS: line.state := S;
        case IE: line.state := E;
        case IO: line.state := O;
        else line.state := M;
      end;
      Drop(reply[p][a]);
      busy[a] := false;
    end;

    rule "evict clean"
      line.state = S | line.state = E
    ==>
    begin
      line.state := I;
      undefine line.data;
    end;

    rule "evict dirty"
      (line.state = M | line.state = O) & !writeback[p][a].full & !busy[a]
    ==>
    begin
      Fill(writeback[p][a], line.data);
      line.state := I;
      undefine line.data;
    end;

    rule "write back"
      writeback[p][a].full & !busy[a]
    ==>
    begin
      memory[a] := writeback[p][a].data;
      Drop(writeback[p][a]);
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      memory[a] := v;
      busy[a] := false;
      for p: Proc do
        cache[p][a].state := I;
        undefine cache[p][a].data;
        Drop(writeback[p][a]);
        Drop(reply[p][a]);
      end;
    end;
  end;
end;

invariant "one owner"
  forall p: Proc do
    forall q: Proc do
      forall a: Block do
        p != q & (cache[p][a].state = M | cache[p][a].state = O)
          -> cache[q][a].state != M & cache[q][a].state != O & cache[q][a].state != E
      end
    end
  end;
