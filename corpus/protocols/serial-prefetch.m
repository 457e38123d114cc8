-- Serial memory with a register for each processor that holds one block fetched ahead. Stores of
-- other processors do not reach it, and loads prefer it: they go back in time.
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
  Register: record
    full: boolean;
    block: Block;
    data: Value;
  end;

var
  memory: array[Block] of Value;
  register: array[Proc] of Register;

ruleset p: Proc; a: Block do
  alias r: register[p] do
    --@ load proc=p block=a from=memory[a]
    rule "load from memory"
      !(r.full & r.block = a)
    ==>
    begin
    end;

    --@ load proc=p block=a from=register[p].data
    rule "load from register"
      r.full & r.block = a
    ==>
    begin
      undefine r;
      r.full := false;
    end;

    rule "prefetch"
      !r.full
    ==>
    begin
      r.full := true;
      r.block := a;
      r.data := memory[a];
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        true
      ==>
      begin
        memory[a] := v;
        -- One's own stores are seen.
        if r.full & r.block = a then
          r.data := v;
        end;
      end;
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      memory[a] := v;
    end;
    for p: Proc do
      undefine register[p];
      register[p].full := false;
    end;
  end;
end;
