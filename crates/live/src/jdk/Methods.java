import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.NoSuchElementException;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.PriorityBlockingQueue;
import java.util.function.Supplier;

/**
 * The collections and their methods, by name and number of arguments.
 *
 * <p>Methods return null, a truth value, a number or a list of these; an entry is a list of two. If
 * the JDK throws because there is no such element, null is returned. No method blocks.
 */
final class Methods {
    private Methods() {}

    /** A method: what it does to a collection. */
    interface Body {
        Object call(Object collection, Object[] args) throws Exception;
    }

    /** A kind of collection: how to make one, and what can be called. */
    static final class Kind {
        final Supplier<Object> make;
        final Map<String, Body> methods;

        Kind(Supplier<Object> make, Map<String, Body> methods) {
            this.make = make;
            this.methods = methods;
        }
    }

    static final Map<String, Kind> KINDS = new LinkedHashMap<>();

    static {
        Map<String, Body> map = maps();
        Map<String, Body> hashMap = new HashMap<>(map);
        hashMap.put("mappingCount/0", (c, a) -> ((ConcurrentHashMap<?, ?>) c).mappingCount());
        hashMap.put("contains/1", (c, a) -> ((ConcurrentHashMap<?, ?>) c).contains(a[0]));
        hashMap.put("keys/0", (c, a) -> list(((ConcurrentHashMap<?, ?>) c).keys()));
        hashMap.put("elements/0", (c, a) -> list(((ConcurrentHashMap<?, ?>) c).elements()));
        Map<String, Body> sortedMap = new HashMap<>(map);
        sortedMap.putAll(sortedMaps());
        Map<String, Body> set = sets();
        Map<String, Body> sortedSet = new HashMap<>(set);
        sortedSet.putAll(sortedSets());
        Map<String, Body> queue = queues();
        Map<String, Body> blocking = new HashMap<>(queue);
        blocking.put("drainTo/0", (c, a) -> drain((BlockingQueue<?>) c));
        Map<String, Body> deque = deques();
        Map<String, Body> blockingDeque = new HashMap<>(deque);
        blockingDeque.put("drainTo/0", (c, a) -> drain((BlockingQueue<?>) c));

        kind("ConcurrentHashMap", ConcurrentHashMap::new, hashMap);
        kind("ConcurrentSkipListMap", ConcurrentSkipListMap::new, sortedMap);
        kind("ConcurrentSkipListSet", ConcurrentSkipListSet::new, sortedSet);
        kind("CopyOnWriteArraySet", CopyOnWriteArraySet::new, set);
        kind("CopyOnWriteArrayList", CopyOnWriteArrayList::new, lists());
        kind("ConcurrentLinkedQueue", ConcurrentLinkedQueue::new, queue);
        kind("LinkedBlockingQueue", LinkedBlockingQueue::new, blocking);
        kind("ArrayBlockingQueue", () -> new ArrayBlockingQueue<Object>(2), blocking);
        kind("LinkedTransferQueue", LinkedTransferQueue::new, blocking);
        kind("PriorityBlockingQueue", PriorityBlockingQueue::new, blocking);
        kind("ConcurrentLinkedDeque", ConcurrentLinkedDeque::new, deque);
        kind("LinkedBlockingDeque", LinkedBlockingDeque::new, blockingDeque);
        kind("Broken", Broken::new, map);
    }

    static void kind(String name, Supplier<Object> make, Map<String, Body> methods) {
        KINDS.put(name, new Kind(make, methods));
    }

    @SuppressWarnings("unchecked")
    static ConcurrentMap<Object, Object> map(Object c) {
        return (ConcurrentMap<Object, Object>) c;
    }

    @SuppressWarnings("unchecked")
    static NavigableMap<Object, Object> sortedMap(Object c) {
        return (NavigableMap<Object, Object>) c;
    }

    @SuppressWarnings("unchecked")
    static Collection<Object> collection(Object c) {
        return (Collection<Object>) c;
    }

    @SuppressWarnings("unchecked")
    static NavigableSet<Object> sortedSet(Object c) {
        return (NavigableSet<Object>) c;
    }

    @SuppressWarnings("unchecked")
    static Queue<Object> queue(Object c) {
        return (Queue<Object>) c;
    }

    @SuppressWarnings("unchecked")
    static Deque<Object> deque(Object c) {
        return (Deque<Object>) c;
    }

    @SuppressWarnings("unchecked")
    static CopyOnWriteArrayList<Object> array(Object c) {
        return (CopyOnWriteArrayList<Object>) c;
    }

    static Map<String, Body> maps() {
        Map<String, Body> m = new HashMap<>();
        m.put("put/2", (c, a) -> map(c).put(a[0], a[1]));
        m.put("get/1", (c, a) -> map(c).get(a[0]));
        m.put("getOrDefault/2", (c, a) -> map(c).getOrDefault(a[0], a[1]));
        m.put("remove/1", (c, a) -> map(c).remove(a[0]));
        m.put("remove/2", (c, a) -> map(c).remove(a[0], a[1]));
        m.put("putIfAbsent/2", (c, a) -> map(c).putIfAbsent(a[0], a[1]));
        m.put("replace/2", (c, a) -> map(c).replace(a[0], a[1]));
        m.put("replace/3", (c, a) -> map(c).replace(a[0], a[1], a[2]));
        m.put("containsKey/1", (c, a) -> map(c).containsKey(a[0]));
        m.put("containsValue/1", (c, a) -> map(c).containsValue(a[0]));
        m.put("size/0", (c, a) -> map(c).size());
        m.put("isEmpty/0", (c, a) -> map(c).isEmpty());
        m.put("clear/0", (c, a) -> {
            map(c).clear();
            return null;
        });
        m.put("keySet/0", (c, a) -> list(map(c).keySet()));
        m.put("values/0", (c, a) -> list(map(c).values()));
        m.put("entrySet/0", (c, a) -> entries(map(c)));
        m.put("putAll/1", (c, a) -> {
            map(c).putAll(entriesOf(a[0]));
            return null;
        });
        return m;
    }

    static Map<String, Body> sortedMaps() {
        Map<String, Body> m = new HashMap<>();
        m.put("firstKey/0", (c, a) -> orNull(() -> sortedMap(c).firstKey()));
        m.put("lastKey/0", (c, a) -> orNull(() -> sortedMap(c).lastKey()));
        m.put("firstEntry/0", (c, a) -> pair(sortedMap(c).firstEntry()));
        m.put("lastEntry/0", (c, a) -> pair(sortedMap(c).lastEntry()));
        m.put("pollFirstEntry/0", (c, a) -> pair(sortedMap(c).pollFirstEntry()));
        m.put("pollLastEntry/0", (c, a) -> pair(sortedMap(c).pollLastEntry()));
        m.put("lowerKey/1", (c, a) -> sortedMap(c).lowerKey(a[0]));
        m.put("floorKey/1", (c, a) -> sortedMap(c).floorKey(a[0]));
        m.put("ceilingKey/1", (c, a) -> sortedMap(c).ceilingKey(a[0]));
        m.put("higherKey/1", (c, a) -> sortedMap(c).higherKey(a[0]));
        m.put("headMap/1", (c, a) -> entries(sortedMap(c).headMap(a[0])));
        m.put("tailMap/1", (c, a) -> entries(sortedMap(c).tailMap(a[0])));
        return m;
    }

    /** What every collection that is no map has. */
    static Map<String, Body> collections() {
        Map<String, Body> m = new HashMap<>();
        m.put("add/1", (c, a) -> collection(c).add(a[0]));
        m.put("remove/1", (c, a) -> collection(c).remove(a[0]));
        m.put("contains/1", (c, a) -> collection(c).contains(a[0]));
        m.put("size/0", (c, a) -> collection(c).size());
        m.put("isEmpty/0", (c, a) -> collection(c).isEmpty());
        m.put("clear/0", (c, a) -> {
            collection(c).clear();
            return null;
        });
        m.put("toArray/0", (c, a) -> Arrays.asList(collection(c).toArray()));
        m.put("iterator/0", (c, a) -> list(collection(c)));
        return m;
    }

    static Map<String, Body> sets() {
        Map<String, Body> m = collections();
        m.put("addAll/1", (c, a) -> collection(c).addAll((List<?>) a[0]));
        m.put("removeAll/1", (c, a) -> collection(c).removeAll((List<?>) a[0]));
        return m;
    }

    static Map<String, Body> sortedSets() {
        Map<String, Body> m = new HashMap<>();
        m.put("first/0", (c, a) -> orNull(() -> sortedSet(c).first()));
        m.put("last/0", (c, a) -> orNull(() -> sortedSet(c).last()));
        m.put("pollFirst/0", (c, a) -> sortedSet(c).pollFirst());
        m.put("pollLast/0", (c, a) -> sortedSet(c).pollLast());
        m.put("lower/1", (c, a) -> sortedSet(c).lower(a[0]));
        m.put("floor/1", (c, a) -> sortedSet(c).floor(a[0]));
        m.put("ceiling/1", (c, a) -> sortedSet(c).ceiling(a[0]));
        m.put("higher/1", (c, a) -> sortedSet(c).higher(a[0]));
        return m;
    }

    static Map<String, Body> lists() {
        Map<String, Body> m = collections();
        m.put("removeAt/1", (c, a) -> inRange(() -> array(c).remove((int) (Integer) a[0])));
        m.put("addIfAbsent/1", (c, a) -> array(c).addIfAbsent(a[0]));
        m.put("addAll/1", (c, a) -> collection(c).addAll((List<?>) a[0]));
        m.put("get/1", (c, a) -> inRange(() -> array(c).get((Integer) a[0])));
        m.put("set/2", (c, a) -> inRange(() -> array(c).set((Integer) a[0], a[1])));
        m.put("indexOf/1", (c, a) -> array(c).indexOf(a[0]));
        m.put("lastIndexOf/1", (c, a) -> array(c).lastIndexOf(a[0]));
        return m;
    }

    static Map<String, Body> queues() {
        Map<String, Body> m = collections();
        m.remove("add/1");
        m.put("offer/1", (c, a) -> queue(c).offer(a[0]));
        m.put("poll/0", (c, a) -> queue(c).poll());
        m.put("peek/0", (c, a) -> queue(c).peek());
        return m;
    }

    static Map<String, Body> deques() {
        Map<String, Body> m = queues();
        m.put("addFirst/1", (c, a) -> {
            deque(c).addFirst(a[0]);
            return null;
        });
        m.put("addLast/1", (c, a) -> {
            deque(c).addLast(a[0]);
            return null;
        });
        m.put("offerFirst/1", (c, a) -> deque(c).offerFirst(a[0]));
        m.put("offerLast/1", (c, a) -> deque(c).offerLast(a[0]));
        m.put("pollFirst/0", (c, a) -> deque(c).pollFirst());
        m.put("pollLast/0", (c, a) -> deque(c).pollLast());
        m.put("removeFirst/0", (c, a) -> orNull(() -> deque(c).removeFirst()));
        m.put("removeLast/0", (c, a) -> orNull(() -> deque(c).removeLast()));
        m.put("peekFirst/0", (c, a) -> deque(c).peekFirst());
        m.put("peekLast/0", (c, a) -> deque(c).peekLast());
        m.put("getFirst/0", (c, a) -> orNull(() -> deque(c).getFirst()));
        m.put("getLast/0", (c, a) -> orNull(() -> deque(c).getLast()));
        m.put("removeFirstOccurrence/1", (c, a) -> deque(c).removeFirstOccurrence(a[0]));
        m.put("removeLastOccurrence/1", (c, a) -> deque(c).removeLastOccurrence(a[0]));
        return m;
    }

    static Object orNull(Supplier<Object> get) {
        try {
            return get.get();
        } catch (NoSuchElementException missing) {
            return null;
        }
    }

    static Object inRange(Supplier<Object> get) {
        try {
            return get.get();
        } catch (IndexOutOfBoundsException missing) {
            return null;
        }
    }

    static List<Object> list(Iterable<?> elements) {
        List<Object> list = new ArrayList<>(4);
        for (Object element : elements) {
            list.add(element);
        }
        return list;
    }

    static List<Object> list(Enumeration<?> elements) {
        List<Object> list = new ArrayList<>(4);
        while (elements.hasMoreElements()) {
            list.add(elements.nextElement());
        }
        return list;
    }

    static List<Object> drain(BlockingQueue<?> queue) {
        List<Object> list = new ArrayList<>(4);
        queue.drainTo(list);
        return list;
    }

    static Object pair(Map.Entry<Object, Object> entry) {
        return entry == null ? null : Arrays.asList(entry.getKey(), entry.getValue());
    }

    static List<Object> entries(Map<Object, Object> map) {
        List<Object> list = new ArrayList<>(4);
        for (Map.Entry<Object, Object> entry : map.entrySet()) {
            list.add(pair(entry));
        }
        return list;
    }

    static Map<Object, Object> entriesOf(Object pairs) {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (Object pair : (List<?>) pairs) {
            List<?> both = (List<?>) pair;
            map.put(both.get(0), both.get(1));
        }
        return map;
    }

    /**
     * A deliberately wrong map for tests: its conditional methods check first and act after a pause,
 * so two threads can both find a key absent.
     */
    static final class Broken extends AbstractMap<Object, Object>
            implements ConcurrentMap<Object, Object> {
        private final Map<Object, Object> map = Collections.synchronizedMap(new HashMap<>());

        @Override
        public Object get(Object key) {
            return map.get(key);
        }

        @Override
        public boolean containsKey(Object key) {
            return map.containsKey(key);
        }

        @Override
        public Object put(Object key, Object value) {
            return map.put(key, value);
        }

        @Override
        public Object remove(Object key) {
            return map.remove(key);
        }

        @Override
        public Object putIfAbsent(Object key, Object value) {
            Object found = map.get(key);
            Thread.yield();
            if (found == null) {
                map.put(key, value);
            }
            return found;
        }

        @Override
        public boolean remove(Object key, Object value) {
            boolean found = value.equals(map.get(key));
            Thread.yield();
            if (found) {
                map.remove(key);
            }
            return found;
        }

        @Override
        public boolean replace(Object key, Object expected, Object value) {
            boolean found = expected.equals(map.get(key));
            Thread.yield();
            if (found) {
                map.put(key, value);
            }
            return found;
        }

        @Override
        public Object replace(Object key, Object value) {
            return map.replace(key, value);
        }

        @Override
        public Set<Map.Entry<Object, Object>> entrySet() {
            synchronized (map) {
                return new HashMap<>(map).entrySet();
            }
        }

        @Override
        public void clear() {
            map.clear();
        }
    }
}
