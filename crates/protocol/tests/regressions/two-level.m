-- expect: consistent
-- Two levels: each processor has a write-through L1 in front of a private write-back L2; the L2s are
-- kept coherent by MSI on an atomic bus; the L2 includes the L1 and back-invalidates it, by a message
-- that takes its time: the snooping L2 answers only when the L1 has acknowledged.
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
  L1Line: record valid: boolean; data: Value; end;
  L2Line: record state: State; inv: boolean; data: Value; end;

var
  l1: array[Proc] of array[Block] of L1Line;
  l2: array[Proc] of array[Block] of L2Line;
  memory: array[Block] of Value;

-- Nobody else holds a copy in its L1, as far as the L2 that includes it knows.
function Alone(p: Proc; a: Block): boolean;
begin
  return forall q: Proc do q = p | l2[q][a].state = I end;
end;

ruleset p: Proc; a: Block do
  --@ load proc=p block=a from=l1[p][a].data
  rule "load hit in L1"
    l1[p][a].valid
  ==> begin end;

  rule "fill L1 from L2"
    !l1[p][a].valid & l2[p][a].state != I & !l2[p][a].inv
  ==>
  begin
    l1[p][a].valid := true;
    l1[p][a].data := l2[p][a].data;
  end;

  ruleset v: Value do
    --@ store proc=p block=a
    rule "store through L1 into L2"
      l2[p][a].state = M & !l2[p][a].inv
    ==>
    begin
      if l1[p][a].valid then l1[p][a].data := v; end;
      l2[p][a].data := v;
    end;
  end;

  rule "L1 drops its line"
    l1[p][a].valid
  ==>
  begin
    l1[p][a].valid := false;
    undefine l1[p][a].data;
  end;

  rule "bus read"
    l2[p][a].state = I & forall q: Proc do l2[q][a].state != M end
  ==>
  begin
    l2[p][a].state := S;
    l2[p][a].inv := false;
    l2[p][a].data := memory[a];
  end;

  rule "bus upgrade"
    l2[p][a].state = S & Alone(p, a) & !l2[p][a].inv
  ==>
  begin
    l2[p][a].state := M;
  end;

  -- somebody wants the line: back-invalidate, then leave
  rule "snoop: back-invalidation starts"
    l2[p][a].state != I & !l2[p][a].inv
  ==>
  begin
    l2[p][a].inv := true;
  end;

  rule "L1 acknowledges back-invalidation"
    l2[p][a].inv
  ==>
  begin
    l1[p][a].valid := false;
    undefine l1[p][a].data;
    if l2[p][a].state = M then memory[a] := l2[p][a].data; end;
    l2[p][a].state := I;
    l2[p][a].inv := false;
    undefine l2[p][a].data;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      memory[a] := v;
      for p: Proc do
        l1[p][a].valid := false;
        undefine l1[p][a].data;
        l2[p][a].state := I;
        l2[p][a].inv := false;
        undefine l2[p][a].data;
      end;
    end;
  end;
end;
