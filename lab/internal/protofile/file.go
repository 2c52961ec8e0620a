package protofile

import (
	"strings"

	"github.com/bufbuild/protocompile/ast"
	"github.com/bufbuild/protocompile/parser"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// kind is what a name stands for.
type kind = descriptorpb.FieldDescriptorProto_Type

const (
	ofMessage = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	ofEnum    = descriptorpb.FieldDescriptorProto_TYPE_ENUM
)

// file is one that has been parsed, and whose imports are known.
type file struct {
	parser.Result

	known   *protoregistry.Files
	own     map[protoreflect.FullName]kind // what it defines
	visible map[string]bool                // files whose names it may use
}

// complete resolves names and options in the descriptor.
func (f *file) complete() error {
	d := f.FileDescriptorProto()
	f.own, f.visible = map[protoreflect.FullName]kind{}, map[string]bool{}
	pkg := protoreflect.FullName(d.GetPackage())
	f.define(pkg, d.GetMessageType(), d.GetEnumType())
	for _, name := range d.GetDependency() {
		f.see(name)
	}
	if err := f.interpret(d.ProtoReflect()); err != nil {
		return err
	}
	if err := f.resolveMessages(pkg, d.GetMessageType()); err != nil {
		return err
	}
	if err := f.resolveFields(pkg, d.GetExtension()); err != nil {
		return err
	}
	for _, service := range d.GetService() {
		for _, method := range service.GetMethod() {
			if err := f.resolveMethod(within(pkg, service.GetName()), method); err != nil {
				return err
			}
		}
	}
	return nil
}

// within returns the name of what is defined in a scope, which may be empty.
func within(scope protoreflect.FullName, name string) protoreflect.FullName {
	return scope.Append(protoreflect.Name(name))
}

// define notes what there is to refer to.
func (f *file) define(scope protoreflect.FullName, messages []*descriptorpb.DescriptorProto, enums []*descriptorpb.EnumDescriptorProto) {
	for _, e := range enums {
		f.own[within(scope, e.GetName())] = ofEnum
	}
	for _, m := range messages {
		name := within(scope, m.GetName())
		f.own[name] = ofMessage
		f.define(name, m.GetNestedType(), m.GetEnumType())
	}
}

// see makes the names of a file usable, and of those that it passes on.
func (f *file) see(name string) {
	imported, err := f.known.FindFileByPath(name)
	if err != nil || f.visible[name] {
		return
	}
	f.visible[name] = true
	for i := range imported.Imports().Len() {
		if passed := imported.Imports().Get(i); passed.IsPublic {
			f.see(passed.Path())
		}
	}
}

// find returns the full name for one that is used in a scope, and what it stands for:
// the innermost scope that has it counts.
func (f *file) find(scope protoreflect.FullName, name string) (protoreflect.FullName, kind, bool) {
	if full, is := strings.CutPrefix(name, "."); is {
		scope, name = "", full
	}
	for {
		full := protoreflect.FullName(name)
		if scope != "" {
			full = scope + "." + full
		}
		if k, is := f.kindOf(full); is {
			return full, k, true
		}
		if scope == "" {
			return "", 0, false
		}
		scope = scope.Parent()
	}
}

func (f *file) kindOf(name protoreflect.FullName) (kind, bool) {
	if k, is := f.own[name]; is {
		return k, true
	}
	d, err := f.known.FindDescriptorByName(name)
	if err != nil || !f.visible[d.ParentFile().Path()] {
		return 0, false
	}
	switch d.(type) {
	case protoreflect.MessageDescriptor:
		return ofMessage, true
	case protoreflect.EnumDescriptor:
		return ofEnum, true
	}
	return 0, false
}

func (f *file) resolveMessages(scope protoreflect.FullName, messages []*descriptorpb.DescriptorProto) error {
	for _, m := range messages {
		name := within(scope, m.GetName())
		if err := f.resolveFields(name, m.GetField()); err != nil {
			return err
		}
		if err := f.resolveFields(name, m.GetExtension()); err != nil {
			return err
		}
		if err := f.resolveMessages(name, m.GetNestedType()); err != nil {
			return err
		}
	}
	return nil
}

// resolveFields finds the types of fields and, for extensions, what they extend.
func (f *file) resolveFields(scope protoreflect.FullName, fields []*descriptorpb.FieldDescriptorProto) error {
	for _, field := range fields {
		node := f.FieldNode(field)
		if field.Extendee != nil {
			full, err := f.message(scope, field.GetExtendee(), node.FieldExtendee())
			if err != nil {
				return err
			}
			field.Extendee = full
		}
		if field.TypeName == nil {
			continue
		}
		full, k, is := f.find(scope, field.GetTypeName())
		if !is {
			return f.fault(node.FieldType(), "unknown type %s", field.GetTypeName())
		}
		field.TypeName = new("." + string(full))
		if field.Type == nil { // else it is a group
			field.Type = k.Enum()
		}
	}
	return nil
}

func (f *file) resolveMethod(scope protoreflect.FullName, method *descriptorpb.MethodDescriptorProto) (err error) {
	node := f.MethodNode(method)
	if method.InputType, err = f.message(scope, method.GetInputType(), node.GetInputType()); err != nil {
		return err
	}
	method.OutputType, err = f.message(scope, method.GetOutputType(), node.GetOutputType())
	return err
}

// message finds a message by a name that is used in a scope, and returns it as the
// descriptor has it: with a dot before it.
func (f *file) message(scope protoreflect.FullName, name string, node ast.Node) (*string, error) {
	full, k, is := f.find(scope, name)
	if !is {
		return nil, f.fault(node, "unknown type %s", name)
	}
	if k != ofMessage {
		return nil, f.fault(node, "%s is not a message", full)
	}
	return new("." + string(full)), nil
}

func (f *file) fault(node ast.Node, format string, values ...any) error {
	return reporter.Errorf(f.FileNode().NodeInfo(node), format, values...)
}
