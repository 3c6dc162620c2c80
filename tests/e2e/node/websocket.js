// Publish ten messages and consume them, with the WebSocket client of Node.js.
const [base, topic] = process.argv.slice(2);
const producer = new WebSocket(`${base}/producer/${topic}`);
const consumer = new WebSocket(`${base}/consumer/${topic}/node`);

const fail = (what) => {
  console.error(what);
  process.exit(1);
};

const isOpen = (socket) => new Promise((resolve) => socket.addEventListener("open", resolve));

let results = 0;
producer.addEventListener("message", (event) => {
  const result = JSON.parse(event.data);
  if (result.result !== "ok") fail(event.data);
  results += 1;
});

let messages = 0;
consumer.addEventListener("message", (event) => {
  const message = JSON.parse(event.data);
  if (Buffer.from(message.payload, "base64").toString() !== `message ${messages}`) fail(event.data);
  consumer.send(JSON.stringify({ messageId: message.messageId }));
  messages += 1;
  if (messages === 10) {
    console.log(`${messages} messages`);
    producer.close();
    consumer.close();
  }
});

Promise.all([isOpen(producer), isOpen(consumer)]).then(() => {
  for (let number = 0; number < 10; number += 1) {
    const payload = Buffer.from(`message ${number}`).toString("base64");
    producer.send(JSON.stringify({ payload, properties: { key1: "value1" }, context: String(number) }));
  }
});
