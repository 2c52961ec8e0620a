package socket

// entry is a frame in a queue, with its number among all frames of the socket.
type entry struct {
	frame  *frame
	number uint64
}

// fifo is a queue that takes no memory while it is empty. Not for concurrent use.
type fifo struct {
	entries []entry
	head    int
	bytes   int // of all frames in it
}

func (q *fifo) len() int { return len(q.entries) - q.head }

func (q *fifo) push(e entry) {
	q.entries = append(q.entries, e)
	q.bytes += len(e.frame.bytes)
}

// first returns the oldest. The queue is not empty.
func (q *fifo) first() entry { return q.entries[q.head] }

// pop takes the oldest out. The queue is not empty.
func (q *fifo) pop() entry {
	e := q.entries[q.head]
	q.entries[q.head] = entry{}
	q.head++
	q.bytes -= len(e.frame.bytes)
	switch {
	case q.len() == 0:
		q.entries, q.head = nil, 0
	case q.head > 64 && q.head > len(q.entries)/2:
		q.entries, q.head = append([]entry(nil), q.entries[q.head:]...), 0
	}
	return e
}
