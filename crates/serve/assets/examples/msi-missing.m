-- MSI on a snooping bus with split transactions and write-back buffers.
--
-- A request takes the bus for its block until its data arrives; what it does to other caches happens
-- when it gets the bus. An evicted dirty line waits in the write-back buffer, which snoops too.
-- msi.m, but an upgrade takes the bus without invalidating the other copies.
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
  -- Invalid, shared, modified; waiting for the data of a shared or of a modified line.
  State: enum { I, S, M, IS, IM };
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

-- Sends the newest value of a block to a cache; a dirty line becomes shared, and the memory clean.
procedure Fetch(p: Proc; a: Block);
begin
  for q: Proc do
    if cache[q][a].state = M then
      memory[a] := cache[q][a].data;
      cache[q][a].state := S;
    end;
    if writeback[q][a].full then
      memory[a] := writeback[q][a].data;
      Drop(writeback[q][a]);
    end;
  end;
  Fill(reply[p][a], memory[a]);
end;

procedure InvalidateOthers(p: Proc; a: Block);
begin
  for q: Proc do
    if q != p then
      cache[q][a].state := I;
      undefine cache[q][a].data;
    end;
  end;
end;

ruleset p: Proc; a: Block do
  alias line: cache[p][a] do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      line.state = S | line.state = M
    ==>
    begin
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        line.state = M
      ==>
      begin
        line.data := v;
      end;
    end;

    rule "request shared"
      line.state = I & !busy[a]
    ==>
    begin
      busy[a] := true;
      line.state := IS;
      Fetch(p, a);
    end;

    rule "request modified"
      line.state = I & !busy[a]
    ==>
    begin
      busy[a] := true;
      line.state := IM;
      Fetch(p, a);
      InvalidateOthers(p, a);
    end;

    rule "upgrade"
      line.state = S & !busy[a]
    ==>
    begin
      line.state := M;
    end;

    rule "data arrives"
      reply[p][a].full
    ==>
    begin
      line.data := reply[p][a].data;
      if line.state = IS then
        line.state := S;
      else
        line.state := M;
      end;
      Drop(reply[p][a]);
      busy[a] := false;
    end;

    rule "evict clean"
      line.state = S
    ==>
    begin
      line.state := I;
      undefine line.data;
    end;

    rule "evict dirty"
      line.state = M & !writeback[p][a].full
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

