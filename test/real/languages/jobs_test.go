//go:build real || soak

package languages_test

import (
	"bytes"
	"context"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// refusalOf is what the server of a language says when it has no thread for a call.
func refusalOf(lang string) string {
	return map[string]string{
		"ruby":   "ResourceExhausted: No free threads in thread pool",
		"python": "ResourceExhausted: Concurrent RPC limit exceeded!",
	}[lang]
}

func jobsWorker(t *testing.T, lang string) []string {
	t.Helper()
	program := map[string]string{"ruby": "ruby/worker.rb", "python": "python/worker.py"}[lang]
	interpreter := map[string]string{"ruby": "ruby", "python": "python3"}[lang]
	return []string{interpreter, filepath.Join(harness.Root(t), "examples", "jobs", program)}
}

// A bare worker of two threads refuses what it has no thread for; one with a backlog
// lets it wait, up to so many; behind cabrank all waits, whatever the number.
func TestJobsWorkers(t *testing.T) {
	for _, lang := range []string{"ruby", "python"} {
		threads := []string{"RAILS_MAX_THREADS=2", "CABRANK_SLOTS=2"}
		t.Run(lang+" bare", func(t *testing.T) {
			addr := harness.StartWorkerProcess(t, threads, jobsWorker(t, lang))
			answered, failed := callJobs(t, addr, 12)
			testkit.Want(t, answered >= 1 && failed[refusalOf(lang)] == 12-answered && answered != 12,
				"%d of 12 calls at once answered, failed: %v; want refusals", answered, failed)
		})
		t.Run(lang+" with a backlog", func(t *testing.T) {
			addr := harness.StartWorkerProcess(t, append(threads, "JOBS_BACKLOG=10"), jobsWorker(t, lang))
			// It takes 12, and one that has just ended may still count.
			if answered, failed := callJobs(t, addr, 10); answered != 10 {
				t.Errorf("%d of 10 calls at once answered, failed: %v", answered, failed)
			}
			if answered, failed := callJobs(t, addr, 40); answered < 10 || failed[refusalOf(lang)] != 40-answered || answered == 40 {
				t.Errorf("%d of 40 calls at once answered, failed: %v; want refusals", answered, failed)
			}
		})
		t.Run(lang+" behind cabrank", func(t *testing.T) {
			args := append([]string{"--workers", "2", "--slots", "2", "--min-ready", "2", "--"}, jobsWorker(t, lang)...)
			c := harness.StartCabrankEnv(t, harness.LangEnv(t), args...)
			c.WaitReady(harness.LangBound)
			if answered, failed := callJobs(t, c.Addr, 40); answered != 40 {
				t.Errorf("%d of 40 calls at once answered, failed: %v", answered, failed)
			}
		})
	}
}

// callJobs makes n calls at once and checks the answers.
func callJobs(t *testing.T, addr string, n int) (answered int, failed map[string]int) {
	t.Helper()
	conn := harness.Dial(t, addr)
	ctx, cancel := context.WithTimeout(t.Context(), harness.CallBound)
	defer cancel()
	var tally harness.Tally
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			// id 1, and an answer of id 101 and a name, as fields that Empty does not have.
			request, answer := &emptypb.Empty{}, &emptypb.Empty{}
			request.ProtoReflect().SetUnknown([]byte{0x08, 1})
			err := conn.Invoke(ctx, "/demo.Jobs/GetJob", request, answer, grpc.WaitForReady(true))
			tally.Count(err)
			got := answer.ProtoReflect().GetUnknown()
			testkit.Want(t, err != nil || bytes.Equal(got, []byte("\x08\x65\x12\x07job 101")), "the answer %q", got)
		})
	}
	calls.Wait()
	answered, _ = tally.Sums()
	return answered, tally.Failed()
}
