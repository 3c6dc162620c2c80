// admin calls what it is told to of the Admin API's client in Go, and tells what that made of the answers.
//
// Usage: admin -web-url http://127.0.0.1:8080 reads a call from each line of stdin, {"call": "Topics.Create", "args":
// ["orders", 0]}, and answers each with a line: {"result": [...], "error": "...", "code": 404, "requests": [["PUT",
// "/admin/v2/...", 404]]}. `admin list` prints the calls there are, and the types that they take.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/auth"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/rest"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

const lineBytesMax = 1 << 20

// recorder is a transport that remembers what was asked and how it was answered.
type recorder struct {
	auth.Provider
	requests []any
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.Provider.RoundTrip(request)
	status := 0
	if err == nil {
		status = response.StatusCode
	}
	r.requests = append(r.requests, []any{request.Method, request.URL.EscapedPath(), status})
	return response, err
}

type call struct {
	Call string            `json:"call"`
	Args []json.RawMessage `json:"args"`
}

type answer struct {
	Result   []any  `json:"result"`
	Error    string `json:"error"`
	Code     int    `json:"code"`
	Requests []any  `json:"requests"`
}

func main() {
	url := flag.String("web-url", "http://127.0.0.1:8080", "web service URL")
	flag.Parse()
	if err := run(*url, flag.Arg(0) == "list"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(url string, list bool) error {
	record := &recorder{}
	resources, err := resourcesOf(url, record)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if list {
		return tell(resources, out)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		var asked call
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		record.requests = []any{}
		given, err := play(resources, asked)
		if err != nil {
			return fmt.Errorf("%s: %w", asked.Call, err)
		}
		given.Requests = record.requests
		if err := out.Encode(given); err != nil {
			return err
		}
	}
	return lines.Err()
}

// resourcesOf are the values whose methods can be called, by their names. Functions and what belongs to them have
// version 3 of the API.
func resourcesOf(url string, record *recorder) (map[string]reflect.Value, error) {
	clients := map[config.APIVersion]admin.Client{}
	for _, version := range []config.APIVersion{config.V2, config.V3} {
		given := &config.Config{WebServiceURL: url, PulsarAPIVersion: version}
		provider, err := auth.GetAuthProvider(given)
		if err != nil {
			return nil, err
		}
		record.Provider = provider
		if clients[version], err = admin.NewPulsarClientWithAuthProvider(given, record); err != nil {
			return nil, err
		}
	}
	kind := reflect.TypeFor[admin.Client]()
	resources := map[string]reflect.Value{}
	for i := range kind.NumMethod() {
		name := kind.Method(i).Name
		version := config.V2
		switch name {
		case "Functions", "Sources", "Sinks", "Packages":
			version = config.V3
		}
		made := reflect.ValueOf(clients[version]).MethodByName(name).Call(nil)[0]
		resources[name] = interfaceValue(made, kind.Method(i).Type.Out(0))
	}
	for name, global := range map[string]bool{"TopicPolicies": false, "GlobalTopicPolicies": true} {
		policies, err := admin.TopicPoliciesOf(clients[config.V2], global)
		if err != nil {
			return nil, err
		}
		resources[name] = interfaceValue(reflect.ValueOf(policies), reflect.TypeFor[admin.TopicPolicies]())
	}
	return resources, nil
}

// interfaceValue has the methods of the interface only, not all of those of what stands behind it.
func interfaceValue(value reflect.Value, kind reflect.Type) reflect.Value {
	made := reflect.New(kind).Elem()
	made.Set(value)
	return made
}

// tell prints all calls. Those "WithContext" are the same as those without.
func tell(resources map[string]reflect.Value, out *json.Encoder) error {
	for resource, value := range resources {
		for i := range value.Type().NumMethod() {
			method := value.Type().Method(i)
			if strings.HasSuffix(method.Name, "WithContext") {
				continue
			}
			takes := []string{}
			for j := range method.Type.NumIn() {
				if method.Type.In(j) != reflect.TypeFor[context.Context]() {
					takes = append(takes, method.Type.In(j).String())
				}
			}
			if err := out.Encode(map[string]any{"call": resource + "." + method.Name, "takes": takes}); err != nil {
				return err
			}
		}
	}
	return nil
}

// play makes a call. The error is of the call as it was asked for; what the client says is in the answer.
func play(resources map[string]reflect.Value, asked call) (answer, error) {
	resource, name, _ := strings.Cut(asked.Call, ".")
	value, known := resources[resource]
	if !known {
		return answer{}, fmt.Errorf("there is no such resource")
	}
	method := value.MethodByName(name)
	if !method.IsValid() {
		return answer{}, fmt.Errorf("there is no such method")
	}
	var in []reflect.Value
	left := asked.Args
	for i := range method.Type().NumIn() {
		kind := method.Type().In(i)
		if kind == reflect.TypeFor[context.Context]() {
			in = append(in, reflect.ValueOf(context.Background()))
			continue
		}
		if len(left) == 0 {
			return answer{}, fmt.Errorf("argument %d is missing: %s", len(in), kind)
		}
		made, err := argument(left[0], kind)
		if err != nil {
			return answer{}, err
		}
		in, left = append(in, made), left[1:]
	}
	if len(left) > 0 {
		return answer{}, fmt.Errorf("too many arguments")
	}
	return told(method.Call(in)), nil
}

func told(out []reflect.Value) answer {
	var given answer
	for _, each := range out[:len(out)-1] {
		given.Result = append(given.Result, shown(each.Interface()))
	}
	failure, _ := out[len(out)-1].Interface().(error)
	if failure != nil {
		given.Error = failure.Error()
		if refused, ok := failure.(rest.Error); ok {
			given.Code, given.Error = refused.Code, refused.Reason
		}
	}
	return given
}

// argument makes a value of a kind out of JSON. Names are texts; what has no name in JSON has that of its field.
func argument(raw json.RawMessage, kind reflect.Type) (reflect.Value, error) {
	switch kind {
	case reflect.TypeFor[utils.TopicName]():
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return reflect.Value{}, err
		}
		name, err := utils.GetTopicName(text)
		if err != nil {
			return reflect.Value{}, err
		}
		return reflect.ValueOf(*name), nil
	case reflect.TypeFor[utils.NameSpaceName]():
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return reflect.Value{}, err
		}
		name, err := utils.GetNamespaceName(text)
		if err != nil {
			return reflect.Value{}, err
		}
		return reflect.ValueOf(*name), nil
	}
	made := reflect.New(kind)
	if err := json.Unmarshal(raw, made.Interface()); err != nil {
		return reflect.Value{}, err
	}
	if kind.Kind() == reflect.Struct {
		return made.Elem(), unnamed(raw, made.Elem())
	}
	return made.Elem(), nil
}

// unnamed fills the fields that JSON leaves out.
func unnamed(raw json.RawMessage, made reflect.Value) error {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for i := range made.NumField() {
		field := made.Type().Field(i)
		part, given := parts[field.Name]
		if given && field.Tag.Get("json") == "-" {
			if err := json.Unmarshal(part, made.Field(i).Addr().Interface()); err != nil {
				return err
			}
		}
	}
	return nil
}

// shown is a value as JSON is made of it: messages with their ids and texts.
func shown(value any) any {
	switch value := value.(type) {
	case []*utils.Message:
		all := []any{}
		for _, each := range value {
			all = append(all, shown(each))
		}
		return all
	case *utils.Message:
		if value == nil {
			return nil
		}
		id := value.GetMessageID()
		return map[string]any{
			"topic": value.Topic, "id": id.String(), "payload": string(value.Payload), "properties": value.Properties,
		}
	}
	return value
}
