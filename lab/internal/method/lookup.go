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

// types are the messages and extensions that a template may name: what Any holds.
type types struct {
	known *dynamicpb.Types
	// ask has another type described by the server; nil if there is none to ask.
	ask func(ctx context.Context, name protoreflect.FullName) (*dynamicpb.Types, error)
}

// lookup finds types while one template is read. It remembers what it asked for.
type lookup struct {
	types

	ctx   context.Context                                    //nolint:containedctx // lives as long as the reading, whose interface has none
	asked map[protoreflect.FullName]protoreflect.MessageType // nil: the server does not know it
	more  []*dynamicpb.Types                                 // what came with them
}

func (t types) during(ctx context.Context) *lookup {
	return &lookup{types: t, ctx: ctx, asked: map[protoreflect.FullName]protoreflect.MessageType{}}
}

// FindMessageByURL finds what an Any names: among the files of the method, among
// protobuf's own types, and from the server.
func (l *lookup) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	return l.FindMessageByName(protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:]))
}

// FindMessageByName is FindMessageByURL for the name alone.
func (l *lookup) FindMessageByName(full protoreflect.FullName) (protoreflect.MessageType, error) {
	if !full.IsValid() {
		return nil, fmt.Errorf("%q names no type: write type.googleapis.com/pkg.Message", schema.OneLine(string(full)))
	}
	if found, err := l.known.FindMessageByName(full); err == nil {
		return found, nil
	}
	if found, err := protoregistry.GlobalTypes.FindMessageByName(full); err == nil {
		return found, nil
	}
	if found, ok := l.asked[full]; ok && found != nil {
		return found, nil
	} else if ok || l.ask == nil {
		return nil, protoregistry.NotFound
	}
	l.asked[full] = nil
	more, err := l.ask(l.ctx, full)
	if err != nil {
		return nil, err
	}
	found, err := more.FindMessageByName(full)
	if err != nil {
		return nil, err
	}
	if unknown := schema.Undescribed(found.Descriptor()); unknown != "" {
		return nil, fmt.Errorf("%s needs %s, which the server does not describe", full, unknown)
	}
	l.asked[full] = found
	l.more = append(l.more, more)
	return found, nil
}

// FindExtensionByName finds a field that is written as "[pkg.name]".
func (l *lookup) FindExtensionByName(full protoreflect.FullName) (protoreflect.ExtensionType, error) {
	for _, more := range l.more {
		if found, err := more.FindExtensionByName(full); err == nil {
			return found, nil
		}
	}
	return l.known.FindExtensionByName(full)
}

// FindExtensionByNumber finds the extension of a message that has a number.
func (l *lookup) FindExtensionByNumber(message protoreflect.FullName, field protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	for _, more := range l.more {
		if found, err := more.FindExtensionByNumber(message, field); err == nil {
			return found, nil
		}
	}
	return l.known.FindExtensionByNumber(message, field)
}
