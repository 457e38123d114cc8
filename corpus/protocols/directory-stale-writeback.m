-- directory.m, but the home takes any write-back, also from a cache that has passed its copy on meanwhile.
-- expect: violation

const
  PROCS: 2;
  BLOCKS: 2;
  VALUES: 2;
  CONTROL: 6;
  DATA: 6;

--@ data Value
type
  Proc: scalarset(PROCS);
  Block: scalarset(BLOCKS);
  Value: scalarset(VALUES);
  -- Waiting for shared data, for shared data that is invalid already, for modified data, for modified
  -- data while the shared copy is still good, for acknowledgements; and for the home to take a
  -- dirty copy back (MI), which may have been passed on meanwhile (II).
  State: enum { I, S, M, IS, ISI, IM, SM, MA, MI, II };
  Kind: enum { GetS, GetM, ForwardS, ForwardM, Invalidate, Acknowledge, Done, Late };
  Line: record
    state: State;
    -- Acknowledgements that are expected, less those that have come.
    acks: -PROCS..PROCS;
    data: Value;
  end;
  Message: record
    kind: Kind;
    block: Block;
    -- Which cache is to take it; if it is for the home, which one has sent it.
    target: Proc;
    -- For whom all this is.
    requester: Proc;
  end;
  DataKind: enum { Reply, Homeward, WriteBack };
  DataMessage: record
    kind: DataKind;
    block: Block;
    -- Whom a reply is for, who writes back.
    proc: Proc;
    acks: 0..PROCS;
    data: Value;
  end;
  HomeState: enum { Unowned, SharedBy, Owned, Returning };
  Home: record
    state: HomeState;
    owner: Proc;
    sharer: array[Proc] of boolean;
    memory: Value;
  end;

var
  cache: array[Proc] of array[Block] of Line;
  home: array[Block] of Home;
  control: multiset[CONTROL] of Message;
  network: multiset[DATA] of DataMessage;

procedure Tell(kind: Kind; a: Block; target: Proc; requester: Proc);
var m: Message;
begin
  undefine m;
  m.kind := kind;
  m.block := a;
  m.target := target;
  m.requester := requester;
  multisetadd(m, control);
end;

procedure Send(kind: DataKind; a: Block; proc: Proc; acks: 0..PROCS; v: Value);
var m: DataMessage;
begin
  undefine m;
  m.kind := kind;
  m.block := a;
  m.proc := proc;
  m.acks := acks;
  m.data := v;
  multisetadd(m, network);
end;

procedure Lose(var line: Line);
begin
  line.state := I;
  line.acks := 0;
  undefine line.data;
end;

function Waits(p: Proc): boolean;
begin
  return exists a: Block do
    cache[p][a].state = IS | cache[p][a].state = ISI | cache[p][a].state = IM
    | cache[p][a].state = SM | cache[p][a].state = MA
  end;
end;

ruleset p: Proc; a: Block do
  alias line: cache[p][a] do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      line.state = S | line.state = M | line.state = SM
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
      line.state = I & !Waits(p)
    ==>
    begin
      line.state := IS;
      Tell(GetS, a, p, p);
    end;

    rule "write miss"
      (line.state = I | line.state = S) & !Waits(p)
    ==>
    begin
      if line.state = S then
        line.state := SM;
      else
        line.state := IM;
      end;
      Tell(GetM, a, p, p);
    end;

    rule "evict clean"
      line.state = S
    ==>
    begin
      Lose(line);
    end;

    rule "evict dirty"
      line.state = M & !Waits(p)
    ==>
    begin
      line.state := MI;
      Send(WriteBack, a, p, 0, line.data);
    end;

    rule "all acknowledged"
      line.state = MA & line.acks = 0
    ==>
    begin
      line.state := M;
    end;
  end;
end;

choose i: control do
  alias m: control[i]; h: home[control[i].block]; line: cache[control[i].target][control[i].block] do
    rule "home: shared copy wanted"
      m.kind = GetS & h.state != Returning
    ==>
    begin
      if h.state = Owned then
        Tell(ForwardS, m.block, h.owner, m.requester);
        h.sharer[h.owner] := true;
        undefine h.owner;
        h.state := Returning;
      else
        Send(Reply, m.block, m.requester, 0, h.memory);
        h.state := SharedBy;
      end;
      h.sharer[m.requester] := true;
      multisetremove(i, control);
    end;

    rule "home: modified copy wanted"
      m.kind = GetM & h.state != Returning
    ==>
    var others: 0..PROCS;
    begin
      others := 0;
      if h.state = Owned then
        Tell(ForwardM, m.block, h.owner, m.requester);
      else
        for q: Proc do
          if h.sharer[q] & q != m.requester then
            others := others + 1;
            Tell(Invalidate, m.block, q, m.requester);
          end;
          h.sharer[q] := false;
        end;
        Send(Reply, m.block, m.requester, others, h.memory);
      end;
      h.state := Owned;
      h.owner := m.requester;
      -- What is owned is not looked at again here, and need not be told apart.
      undefine h.memory;
      multisetremove(i, control);
    end;

    rule "owner shares its copy"
      m.kind = ForwardS & (line.state = M | line.state = MI)
    ==>
    begin
      Send(Reply, m.block, m.requester, 0, line.data);
      Send(Homeward, m.block, m.target, 0, line.data);
      if line.state = M then
        line.state := S;
      else
        line.state := II;
        undefine line.data;
      end;
      multisetremove(i, control);
    end;

    rule "owner passes its copy on"
      m.kind = ForwardM & (line.state = M | line.state = MI)
    ==>
    begin
      Send(Reply, m.block, m.requester, 0, line.data);
      if line.state = M then
        Lose(line);
      else
        line.state := II;
        undefine line.data;
      end;
      multisetremove(i, control);
    end;

    rule "cache is invalidated"
      m.kind = Invalidate
    ==>
    begin
      switch line.state
        case S: Lose(line);
        case IS: line.state := ISI;
        case SM:
          line.state := IM;
          undefine line.data;
      end;
      Tell(Acknowledge, m.block, m.requester, m.requester);
      multisetremove(i, control);
    end;

    rule "acknowledgement"
      m.kind = Acknowledge
    ==>
    begin
      line.acks := line.acks - 1;
      multisetremove(i, control);
    end;

    rule "written back"
      m.kind = Done | m.kind = Late & line.state = II
    ==>
    begin
      Lose(line);
      multisetremove(i, control);
    end;
  end;
end;

choose i: network do
  alias m: network[i]; line: cache[network[i].proc][network[i].block];
        h: home[network[i].block] do
    rule "shared data"
      m.kind = Reply & line.state = IS
    ==>
    begin
      line.state := S;
      line.data := m.data;
      multisetremove(i, network);
    end;

    --@ load proc=network[i].proc block=network[i].block from=network[i].data
    rule "shared data, once"
      m.kind = Reply & line.state = ISI
    ==>
    begin
      Lose(line);
      multisetremove(i, network);
    end;

    rule "modified data"
      m.kind = Reply & (line.state = IM | line.state = SM)
    ==>
    begin
      line.state := MA;
      line.data := m.data;
      line.acks := line.acks + m.acks;
      multisetremove(i, network);
    end;

    rule "home: data returns"
      m.kind = Homeward & h.state = Returning
    ==>
    begin
      h.memory := m.data;
      h.state := SharedBy;
      multisetremove(i, network);
    end;

    rule "home: dirty copy written back"
      m.kind = WriteBack & h.state != Returning
    ==>
    begin
      if h.state = Owned then
        h.memory := m.data;
        h.state := Unowned;
        undefine h.owner;
        Tell(Done, m.block, m.proc, m.proc);
      else
        -- The copy was asked for meanwhile: who writes it back has to pass it on first.
        h.sharer[m.proc] := false;
        Tell(Late, m.block, m.proc, m.proc);
      end;
      multisetremove(i, network);
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    undefine control;
    undefine network;
    for a: Block do
      undefine home[a];
      home[a].state := Unowned;
      home[a].memory := v;
      for p: Proc do
        home[a].sharer[p] := false;
        Lose(cache[p][a]);
      end;
    end;
  end;
end;
