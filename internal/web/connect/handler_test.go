package connect

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// silent is a call that ends well without a message.
type silent struct{ webcall.Call }

func (silent) Header() (h2.Fields, error) {
	return h2.Fields(nil).Add(":status", "200").Add("grpc-status", "0"), nil
}
func (silent) Status() (grpcwire.Code, string) { return grpcwire.OK, "" }
func (silent) Cancel()                         {}
func (silent) Close()                          {}

// A unary call whose worker ends it well, and sends no message, has an error for an answer.
func TestNoMessage(t *testing.T) {
	h := New(Options{
		Open:  func(*http.Request, webcall.Request) (webcall.Call, error) { return silent{}, nil },
		Lacks: func(string) bool { return false },
	})
	r := httptest.NewRequest(http.MethodPost, "/a.B/C", http.NoBody)
	r.Header.Set("Content-Type", "application/proto")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got := w.Body.String()
	testkit.Want(t, w.Code == http.StatusNotImplemented && strings.HasPrefix(got, `{"code":"unimplemented"`), "%d %s", w.Code, got)
}
