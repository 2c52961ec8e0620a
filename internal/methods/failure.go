package methods

import (
	"encoding/json"
	"strings"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// failure is why a call has no answer.
type failure struct {
	code    grpcwire.Code
	message string
}

func fail(code grpcwire.Code, message string) *failure { return &failure{code, message} }

// Error implements error.
func (f *failure) Error() string { return f.message }

// codeName returns the name that a code has in errors: gRPC's own in small letters, and
// "canceled" as Connect writes it.
func codeName(code grpcwire.Code) string {
	switch {
	case code == grpcwire.Cancelled:
		return "canceled"
	case code >= grpcwire.NumCodes:
		code = grpcwire.Unknown
	}
	return strings.ToLower(code.String())
}

// MarshalJSON returns the result of a call that fails so.
func (f *failure) MarshalJSON() ([]byte, error) {
	type text struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	return json.Marshal(map[string]text{"error": {codeName(f.code), f.message}})
}
