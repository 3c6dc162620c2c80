// Publish ten messages and consume them, with gorilla/websocket.
package main

import (
	"encoding/base64"
	"fmt"
	"log"
	"os"

	"github.com/gorilla/websocket"
)

type message struct {
	Payload    string            `json:"payload"`
	Properties map[string]string `json:"properties"`
	Context    string            `json:"context,omitempty"`
	MessageID  string            `json:"messageId,omitempty"`
	Result     string            `json:"result,omitempty"`
}

func open(url string) *websocket.Conn {
	socket, _, err := websocket.DefaultDialer.Dial(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	return socket
}

func main() {
	base, topic := os.Args[1], os.Args[2]
	consumer := open(fmt.Sprintf("%s/consumer/%s/go", base, topic))
	producer := open(fmt.Sprintf("%s/producer/%s", base, topic))
	defer consumer.Close()
	defer producer.Close()
	for number := 0; number < 10; number++ {
		text := fmt.Sprintf("message %d", number)
		out := message{Payload: base64.StdEncoding.EncodeToString([]byte(text)), Context: text}
		if err := producer.WriteJSON(out); err != nil {
			log.Fatal(err)
		}
		var result message
		if err := producer.ReadJSON(&result); err != nil || result.Result != "ok" || result.Context != text {
			log.Fatal(err, result)
		}
		var in message
		if err := consumer.ReadJSON(&in); err != nil || in.MessageID != result.MessageID || in.Payload != out.Payload {
			log.Fatal(err, in)
		}
		if err := consumer.WriteJSON(map[string]string{"messageId": in.MessageID}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("10 messages")
}
