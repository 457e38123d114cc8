-- msi-invalidation-queue.m, but the data of a read miss is taken before invalidations that wait: a
-- processor sees a new value, and then an old one.
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
  State: enum { I, S, M };
  Line: record
    state: State;
    -- Whether an invalidation waits to be applied.
    doomed: boolean;
    data: Value;
  end;

var
  cache: array[Proc] of array[Block] of Line;
  memory: array[Block] of Value;

procedure Clean(a: Block);
begin
  for q: Proc do
    if cache[q][a].state = M then
      memory[a] := cache[q][a].data;
      cache[q][a].state := S;
    end;
  end;
end;

procedure DoomOthers(p: Proc; a: Block);
begin
  for q: Proc do
    if q != p & cache[q][a].state != I then
      cache[q][a].doomed := true;
    end;
  end;
end;

function Drained(p: Proc): boolean;
begin
  return forall a: Block do !cache[p][a].doomed end;
end;

ruleset p: Proc; a: Block do
  alias line: cache[p][a] do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      line.state != I
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

    rule "read miss"
      line.state = I
    ==>
    begin
      Clean(a);
      line.data := memory[a];
      line.state := S;
    end;

    rule "write miss"
      line.state != M & Drained(p)
    ==>
    begin
      Clean(a);
      line.data := memory[a];
      DoomOthers(p, a);
      line.state := M;
    end;

    rule "apply invalidation"
      line.doomed
    ==>
    begin
      undefine line.data;
      line.doomed := false;
      line.state := I;
    end;

    rule "evict"
      line.state != I & !line.doomed
    ==>
    begin
      if line.state = M then
        memory[a] := line.data;
      end;
      undefine line.data;
      line.state := I;
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      memory[a] := v;
      for p: Proc do
        cache[p][a].state := I;
        cache[p][a].doomed := false;
        undefine cache[p][a].data;
      end;
    end;
  end;
end;
