package method

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"
)

// In returns Messages for a codec: those of protobuf, or the same values as JSON in
// protobuf's mapping, without spaces. In JSON a call with placeholders is written anew each
// time, which costs several times what Messages does.
//
// Errors: one line, for a message that has no JSON.
func (r *Requests) In(jsonText bool) (messages func(number uint64) [][]byte, err error) {
	if !jsonText {
		return r.Messages, nil
	}
	ready := make([][][]byte, len(r.calls))
	for i := range r.calls {
		written, err := r.write(r.Messages(uint64(i)))
		if err != nil {
			return nil, err
		}
		if r.calls[i].ready != nil {
			ready[i] = written
		}
	}
	return func(number uint64) [][]byte {
		if written := ready[number%uint64(len(ready))]; written != nil {
			return written
		}
		written, err := r.write(r.Messages(number))
		if err != nil {
			panic("internal error: a request had JSON, and has none: " + err.Error()) //nolint:forbidigo // placeholders fill in texts and numbers, which all have JSON
		}
		return written
	}, nil
}

// write writes encoded messages as JSON. What types they name is known since they were read.
func (r *Requests) write(encoded [][]byte) ([][]byte, error) {
	all := make([][]byte, len(encoded))
	for i, one := range encoded {
		m := dynamicpb.NewMessage(r.input)
		if err := (proto.UnmarshalOptions{AllowPartial: true, Resolver: r.types}).Unmarshal(one, m); err != nil {
			return nil, fmt.Errorf("%s cannot be written as JSON: %w", r.input.FullName(), err)
		}
		text, err := protojson.MarshalOptions{AllowPartial: true, Resolver: r.types}.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be written as JSON: %w", r.input.FullName(), err)
		}
		var tight bytes.Buffer // protojson spaces differ from build to build
		if err := json.Compact(&tight, text); err != nil {
			return nil, fmt.Errorf("%s cannot be written as JSON: %w", r.input.FullName(), err)
		}
		all[i] = tight.Bytes()
	}
	return all, nil
}
