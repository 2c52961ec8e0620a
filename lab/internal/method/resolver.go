package method

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
)

// resolver knows the messages and extensions that a template may name. It implements
// protobuf's resolvers.
//
// Concurrency: of one goroutine while a template is read, which asks the server; later of
// any number, which find what is known then.
type resolver struct {
	known []*dynamicpb.Types // of the method, and what the server has described since
	ask   func(name protoreflect.FullName) (*dynamicpb.Types, error)
}

func (m *Method) resolver(ctx context.Context) *resolver {
	t := &resolver{known: []*dynamicpb.Types{m.known}}
	if m.ask != nil {
		t.ask = func(name protoreflect.FullName) (*dynamicpb.Types, error) { return m.ask(ctx, name) }
	}
	return t
}

// FindMessageByURL finds what an Any names: among the files of the method, among
// protobuf's own types, and from the server.
func (t *resolver) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return t.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

// FindMessageByName is FindMessageByURL for the name alone.
func (t *resolver) FindMessageByName(name protoreflect.FullName) (protoreflect.MessageType, error) {
	if !name.IsValid() {
		return nil, fmt.Errorf("%q names no type: write type.googleapis.com/pkg.Message", schema.OneLine(string(name)))
	}
	for _, known := range t.known {
		if found, err := known.FindMessageByName(name); err == nil {
			return found, nil
		}
	}
	found, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err == nil || t.ask == nil {
		return found, err
	}
	more, err := t.ask(name)
	if err != nil {
		return nil, err
	}
	if found, err = more.FindMessageByName(name); err != nil {
		return nil, err
	}
	if unknown := schema.Undescribed(found.Descriptor()); unknown != "" {
		return nil, fmt.Errorf("%s needs %s, which the server does not describe", name, unknown)
	}
	t.known = append(t.known, more)
	return found, nil
}

// FindExtensionByName finds a field that is written as "[pkg.name]".
func (t *resolver) FindExtensionByName(name protoreflect.FullName) (found protoreflect.ExtensionType, err error) {
	for _, known := range t.known {
		if found, err = known.FindExtensionByName(name); err == nil {
			break
		}
	}
	return found, err
}

// FindExtensionByNumber finds the extension of a message that has a number.
func (t *resolver) FindExtensionByNumber(message protoreflect.FullName, number protoreflect.FieldNumber) (found protoreflect.ExtensionType, err error) {
	for _, known := range t.known {
		if found, err = known.FindExtensionByNumber(message, number); err == nil {
			break
		}
	}
	return found, err
}
