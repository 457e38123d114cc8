-- german.m, but a request for a shared copy does not invalidate the exclusive one: the home answers with
-- what it has in memory.
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
  State: enum { Invalid, Shared, Exclusive };
  Kind: enum { Empty, RequestShared, RequestExclusive, Invalidate, Acknowledge, GrantShared,
               GrantExclusive };
  Line: record
    state: State;
    data: Value;
  end;
  Message: record
    kind: Kind;
    data: Value;
  end;
  Home: record
    command: Kind;
    client: Proc;
    exclusive: boolean;
    sharer: array[Proc] of boolean;
    toInvalidate: array[Proc] of boolean;
    memory: Value;
  end;

var
  cache: array[Proc] of array[Block] of Line;
  request: array[Proc] of array[Block] of Kind;
  grant: array[Proc] of array[Block] of Message;
  answer: array[Proc] of array[Block] of Message;
  home: array[Block] of Home;

procedure Vacate(var m: Message);
begin
  m.kind := Empty;
  undefine m.data;
end;

ruleset p: Proc; a: Block do
  alias line: cache[p][a]; h: home[a] do
    --@ load proc=p block=a from=cache[p][a].data
    rule "load"
      line.state != Invalid
    ==>
    begin
    end;

    ruleset v: Value do
      --@ store proc=p block=a
      rule "store"
        line.state = Exclusive
      ==>
      begin
        line.data := v;
      end;
    end;

    rule "ask for shared"
      request[p][a] = Empty & line.state = Invalid
    ==>
    begin
      request[p][a] := RequestShared;
    end;

    rule "ask for exclusive"
      request[p][a] = Empty & line.state != Exclusive
    ==>
    begin
      request[p][a] := RequestExclusive;
    end;

    rule "home takes request"
      h.command = Empty & request[p][a] != Empty
    ==>
    begin
      h.command := request[p][a];
      h.client := p;
      request[p][a] := Empty;
      for q: Proc do
        h.toInvalidate[q] := h.sharer[q];
      end;
    end;

    rule "home invalidates"
      h.toInvalidate[p] & grant[p][a].kind = Empty
      & h.command = RequestExclusive
    ==>
    begin
      grant[p][a].kind := Invalidate;
      h.toInvalidate[p] := false;
    end;

    rule "cache gives up its copy"
      grant[p][a].kind = Invalidate & answer[p][a].kind = Empty
    ==>
    begin
      Vacate(grant[p][a]);
      answer[p][a].kind := Acknowledge;
      if line.state = Exclusive then
        answer[p][a].data := line.data;
      end;
      line.state := Invalid;
      undefine line.data;
    end;

    rule "home takes acknowledgement"
      answer[p][a].kind = Acknowledge & h.command != Empty
    ==>
    begin
      h.sharer[p] := false;
      if h.exclusive & !isundefined(answer[p][a].data) then
        h.exclusive := false;
        h.memory := answer[p][a].data;
      end;
      Vacate(answer[p][a]);
    end;

    rule "home grants shared"
      h.command = RequestShared & h.client = p & grant[p][a].kind = Empty
    ==>
    begin
      grant[p][a].kind := GrantShared;
      grant[p][a].data := h.memory;
      h.sharer[p] := true;
      h.command := Empty;
      undefine h.client;
      for q: Proc do
        h.toInvalidate[q] := false;
      end;
    end;

    rule "home grants exclusive"
      h.command = RequestExclusive & h.client = p & grant[p][a].kind = Empty
      & forall q: Proc do !h.sharer[q] end
    ==>
    begin
      grant[p][a].kind := GrantExclusive;
      grant[p][a].data := h.memory;
      h.sharer[p] := true;
      h.exclusive := true;
      h.command := Empty;
      undefine h.client;
    end;

    rule "cache takes grant"
      grant[p][a].kind = GrantShared | grant[p][a].kind = GrantExclusive
    ==>
    begin
      line.data := grant[p][a].data;
      if grant[p][a].kind = GrantShared then
        line.state := Shared;
      else
        line.state := Exclusive;
      end;
      Vacate(grant[p][a]);
    end;
  end;
end;

ruleset v: Value do
  startstate "start"
    for a: Block do
      home[a].command := Empty;
      undefine home[a].client;
      home[a].exclusive := false;
      home[a].memory := v;
      for p: Proc do
        home[a].sharer[p] := false;
        home[a].toInvalidate[p] := false;
        cache[p][a].state := Invalid;
        undefine cache[p][a].data;
        request[p][a] := Empty;
        Vacate(grant[p][a]);
        Vacate(answer[p][a]);
      end;
    end;
  end;
end;
