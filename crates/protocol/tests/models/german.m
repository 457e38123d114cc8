-- expect: states 1105434, fired 5922288, depth 35, reduced 28088
-- A directory protocol in the style of German's: clients ask a home node for a block in shared or
-- exclusive state over three channels each, and the home node invalidates before it grants.

const
  CLIENTS: 4;
  VALUES: 2;

type
  Client: scalarset(CLIENTS);
  Value: scalarset(VALUES);
  CacheState: enum { Invalid, Shared, Exclusive };
  Command: enum { Empty, WantShared, WantExclusive, Invalidate, InvalidateAck, GrantShared, GrantExclusive };
  Cache: record state: CacheState; data: Value; end;
  Message: record command: Command; data: Value; end;

var
  cache: array [Client] of Cache;
  request, answer, reply: array [Client] of Message;
  to_invalidate, sharers: array [Client] of boolean;
  is_granted: boolean;
  current: Command;
  client: Client;
  memory: Value;
  latest: Value;

ruleset v: Value do
  startstate "with a value"
    for c: Client do
      request[c].command := Empty;
      answer[c].command := Empty;
      reply[c].command := Empty;
      cache[c].state := Invalid;
      to_invalidate[c] := false;
      sharers[c] := false;
    end;
    is_granted := false;
    current := Empty;
    memory := v;
    latest := v;
  end;
end;

ruleset c: Client; v: Value do
  rule "store" cache[c].state = Exclusive ==>
    cache[c].data := v;
    latest := v;
  end;
end;

ruleset c: Client do
  rule "ask for shared" request[c].command = Empty & cache[c].state = Invalid ==>
    request[c].command := WantShared;
  end;

  rule "ask for exclusive" request[c].command = Empty & cache[c].state != Exclusive ==>
    request[c].command := WantExclusive;
  end;

  rule "take request" current = Empty & request[c].command != Empty ==>
    current := request[c].command;
    request[c].command := Empty;
    client := c;
    for d: Client do
      to_invalidate[d] := sharers[d];
    end;
  end;

  rule "invalidate"
    answer[c].command = Empty & to_invalidate[c]
    & (current = WantExclusive | (current = WantShared & is_granted))
  ==>
    answer[c].command := Invalidate;
    to_invalidate[c] := false;
  end;

  rule "acknowledge" answer[c].command = Invalidate & reply[c].command = Empty ==>
    answer[c].command := Empty;
    reply[c].command := InvalidateAck;
    if cache[c].state = Exclusive then
      reply[c].data := cache[c].data;
    end;
    cache[c].state := Invalid;
    undefine cache[c].data;
  end;

  rule "take acknowledgement" reply[c].command = InvalidateAck & current != Empty ==>
    reply[c].command := Empty;
    sharers[c] := false;
    if is_granted then
      is_granted := false;
      memory := reply[c].data;
      undefine reply[c].data;
    end;
  end;

  rule "grant shared"
    current = WantShared & client = c & !is_granted & answer[c].command = Empty
  ==>
    answer[c].command := GrantShared;
    answer[c].data := memory;
    sharers[c] := true;
    current := Empty;
    undefine client;
  end;

  rule "grant exclusive"
    current = WantExclusive & client = c & !is_granted & answer[c].command = Empty
    & forall d: Client do !sharers[d] end
  ==>
    answer[c].command := GrantExclusive;
    answer[c].data := memory;
    sharers[c] := true;
    is_granted := true;
    current := Empty;
    undefine client;
  end;

  rule "get shared" answer[c].command = GrantShared ==>
    cache[c].state := Shared;
    cache[c].data := answer[c].data;
    answer[c].command := Empty;
    undefine answer[c].data;
  end;

  rule "get exclusive" answer[c].command = GrantExclusive ==>
    cache[c].state := Exclusive;
    cache[c].data := answer[c].data;
    answer[c].command := Empty;
    undefine answer[c].data;
  end;
end;

invariant "one writer"
  forall c: Client do forall d: Client do
    c != d -> (cache[c].state = Exclusive -> cache[d].state = Invalid)
  end end;

invariant "data"
  (!is_granted -> memory = latest)
  & forall c: Client do cache[c].state != Invalid -> cache[c].data = latest end;
