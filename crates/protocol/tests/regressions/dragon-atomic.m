-- expect: consistent
-- Dragon: write-update on a split-transaction snooping bus.
-- States: invalid (Dragon has none; absent line), exclusive clean, shared clean, shared modified (owner), modified.
const
  PROCS: 2;
  BLOCKS: 2;
  VALUES: 2;

--@ data Value
type
  Proc: scalarset(PROCS);
  Block: scalarset(BLOCKS);
  Value: scalarset(VALUES);
  State: enum { X, E, Sc, Sm, M };
  Line: record state: State; data: Value; end;
  -- A read on the bus: data on its way.
  Reply: record busy: boolean; shared: boolean; data: Value; end;
  -- A store that waits for the bus to broadcast its update.
  Pending: record full: boolean; block: Block; data: Value; end;

var
  cache: array[Proc] of array[Block] of Line;
  reply: array[Proc] of array[Block] of Reply;
  memory: array[Block] of Value;

function Others(p: Proc; a: Block): boolean;
begin
  return exists q: Proc do q != p & (cache[q][a].state != X | reply[q][a].busy) end;
end;

function InFlight(a: Block): boolean;
begin
  return exists q: Proc do reply[q][a].busy end;
end;

ruleset p: Proc; a: Block do
  alias line: cache[p][a] do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      line.state != X
    ==> begin end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store hit, exclusive"
        (line.state = E | line.state = M) & !InFlight(a)
      ==>
      begin
        line.state := M;
        line.data := v;
      end;

      --@ store proc=p block=a
      rule "store hit, shared: bus update"
        line.state = Sc | line.state = Sm
      ==>
      begin
        for q: Proc do
          if q != p & cache[q][a].state != X then
            cache[q][a].data := v;
            cache[q][a].state := Sc;
          end;
          if reply[q][a].busy then
            reply[q][a].data := v;
            reply[q][a].shared := true;
          end;
        end;
        line.data := v;
        if Others(p, a) then line.state := Sm; else line.state := M; end;
      end;
    end;

    -- read miss: the owner or the memory puts the data on the bus
    rule "bus read"
      line.state = X & !reply[p][a].busy
    ==>
    var owner: boolean;
    begin
      owner := false;
      reply[p][a].busy := true;
      reply[p][a].shared := Others(p, a);
      for q: Proc do
        if cache[q][a].state = M | cache[q][a].state = Sm then
          reply[p][a].data := cache[q][a].data;
          cache[q][a].state := Sm;
          owner := true;
        elsif cache[q][a].state = E then
          cache[q][a].state := Sc;
        end;
      end;
      if !owner then
        reply[p][a].data := memory[a];
      end;
    end;

    rule "fill"
      reply[p][a].busy
    ==>
    begin
      line.data := reply[p][a].data;
      if reply[p][a].shared | Others(p, a) then
        line.state := Sc;
        for q: Proc do
          if q != p then
            if cache[q][a].state = E then cache[q][a].state := Sc; end;
            if cache[q][a].state = M then cache[q][a].state := Sm; end;
          end;
        end;
      else line.state := E; end;
      reply[p][a].busy := false;
      undefine reply[p][a].data;
    end;

    rule "evict clean"
      (line.state = E | line.state = Sc)
    ==>
    begin
      line.state := X;
      undefine line.data;
    end;

    rule "evict dirty"
      (line.state = M | line.state = Sm)
    ==>
    begin
      memory[a] := line.data;
      line.state := X;
      undefine line.data;
    end;
  end;
end;

ruleset v: Value do
startstate "start"
begin
  for p: Proc do
    for a: Block do
      cache[p][a].state := X;
      undefine cache[p][a].data;
      reply[p][a].busy := false;
      reply[p][a].shared := false;
      undefine reply[p][a].data;
    end;
  end;
  for a: Block do
    memory[a] := v;
  end;
end;
end;
