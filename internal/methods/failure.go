package methods

import (
	"encoding/json"

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

// MarshalJSON returns the result of a call that fails so.
func (f *failure) MarshalJSON() ([]byte, error) {
	type text struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	return json.Marshal(map[string]text{"error": {f.code.InJSON(), f.message}})
}
