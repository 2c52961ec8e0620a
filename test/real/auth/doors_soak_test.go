//go:build soak

package auth_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Calls of grpc-go need a token that counts for their method; other keys hold from a reload
// on, and wrong ones change nothing. Nobody who reads the log sees a token or a secret.
func TestTokensOfCalls(t *testing.T) {
	const other = "another-secret-of-the-tests-0123456789abcdef"
	key := file(t, secret+"\n")
	config := file(t, fmt.Sprintf("auth: {doors: all, secret: %s, call: [%s]}\nlog: {level: debug}\n", key, workpb.Work_Io_FullMethodName))
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--config", config)
	conn := harness.Dial(t, c.Addr)
	tokens := []string{secret, other}
	wantCode := func(token string, want codes.Code, why string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
		defer cancel()
		if token != "" {
			tokens = append(tokens, token)
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
		err := harness.CallIo(ctx, conn, "doors", 0).Err
		testkit.Want(t, status.Code(err) == want && strings.Contains(fmt.Sprint(err), why), "got %v, want %s: %s", err, want, why)
	}
	claims := map[string]any{"sub": "7", "exp": time.Now().Add(time.Hour).Unix()}
	good, fresh := sign(secret, `{"alg":"HS256"}`, claims), sign(other, `{"alg":"HS256"}`, claims)
	wantCode("", codes.Unauthenticated, "no token")
	wantCode(sign(secret, `{"alg":"HS256"}`, map[string]any{"sub": "7", "exp": 1}), codes.Unauthenticated, "the token has expired")
	wantCode(encode(`{"alg":"none"}`)+"."+encode(claims)+".", codes.Unauthenticated, "no key here is for")
	wantCode(fresh, codes.Unauthenticated, "a key that is not known here")
	wantCode(tokenFor(nil), codes.PermissionDenied, "does not allow")
	wantCode(good, codes.OK, "")

	reload := func(secret, says string) {
		t.Helper()
		testkit.Must(t, os.WriteFile(key, []byte(secret), 0o600))
		c.Signal(syscall.SIGHUP)
		c.WaitLog(harness.Patience, says)
	}
	reload("short", "configuration refused")
	wantCode(good, codes.OK, "")
	reload(other, "configuration reloaded")
	wantCode(good, codes.Unauthenticated, "a key that is not known here")
	wantCode(fresh, codes.OK, "")
	c.Stop()
	for _, hidden := range tokens {
		testkit.Want(t, !strings.Contains(c.Log(), hidden), "the log has %.20s...", hidden)
	}
}
