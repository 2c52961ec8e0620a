package demo

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/cabrank/cabrank/internal/demo/demopb"
)

// An Answer is what one call brought.
type Answer struct {
	// Number counts the calls from 1 in the order of their start.
	Number int
	// Worker is the name of the worker that answered.
	Worker  string
	Message string
	// Took is the time from the start of the call to its answer.
	Took time.Duration
}

// Call greets n times over conn, at most inFlight calls at once (less than 1
// means 1), and hands each answer to show as it comes.
//
// Errors: the first call that fails ends the rest.
// Concurrency: show is never called twice at once.
func Call(ctx context.Context, conn grpc.ClientConnInterface, n, inFlight int, show func(Answer)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := demopb.NewGreeterClient(conn)
	numbers := make(chan int)
	var (
		callers sync.WaitGroup
		showing sync.Mutex
	)
	for range max(inFlight, 1) {
		callers.Go(func() {
			for number := range numbers {
				answer, err := callOnce(ctx, client, number)
				if err != nil {
					cancel(fmt.Errorf("call %d: %w", number, err))
					continue
				}
				showing.Lock()
				show(answer)
				showing.Unlock()
			}
		})
	}
	for number := 1; number <= n && ctx.Err() == nil; number++ {
		numbers <- number
	}
	close(numbers)
	callers.Wait()
	return context.Cause(ctx)
}

func callOnce(ctx context.Context, client demopb.GreeterClient, number int) (Answer, error) {
	start := time.Now()
	reply, err := client.SayHello(ctx, &demopb.HelloRequest{Name: fmt.Sprintf("caller %d", number)})
	return Answer{
		Number:  number,
		Worker:  reply.GetWorker(),
		Message: reply.GetMessage(),
		Took:    time.Since(start),
	}, err
}

// Share counts answers by worker.
type Share map[string]int

// Print writes one row per worker, in the order of the names, with a bar as
// long as its part of all answers.
func (s Share) Print(w io.Writer, style Style) {
	total := 0
	workers := make([]string, 0, len(s))
	for worker, count := range s {
		workers = append(workers, worker)
		total += count
	}
	slices.Sort(workers)
	for _, worker := range workers {
		count := s[worker]
		bar := style.bar(strings.Repeat("█", max(1, barWidth*count/total)))
		fmt.Fprintf(w, "  %-10s %4d  %3.0f %%  %s\n", worker, count, 100*float64(count)/float64(total), bar)
	}
}

// barWidth is the length of the bar of a worker that gave every answer.
const barWidth = 30
