/** What a new flow can begin with. */

/** @typedef {{name: string, title: string, about: string, text: string}} Template */

/** @type {Template[]} */
export const TEMPLATES = [
  {
    name: "hello",
    title: "Hello world",
    about: "One step, no function: it greets the name of the input.",
    text: `version: v1
type: flow
steps:
  - type: pass
    name: hello
    outputMappings:
      - target: greeting
        source: Hello, world
      - target: name
        source: $input.name
`,
  },
  {
    name: "callback",
    title: "Wait for an answer",
    about: "A function asks; the flow waits until a person or a program reports with the task's token.",
    text: `version: v1
type: flow
steps:
  - type: task
    name: ask
    # Register the function: flowserver functions put office/ask URL
    resourceArn: acs:fc:::services/office/functions/ask
    pattern: waitForCallback
    timeoutSeconds: 86400
    inputMappings:
      - target: taskToken
        source: $context.task.token
      - target: question
        source: $input.question
    outputMappings:
      - target: answer
        source: $local.answer
    catch:
      - errors:
          - FnF.TaskTimeout
        goto: noAnswer
  - type: succeed
    name: answered
    outputMappings:
      - target: answer
        source: $input.answer
  - type: fail
    name: noAnswer
    error: NoAnswer
    cause: Nothing was reported within a day.
`,
  },
  {
    name: "foreach",
    title: "For each item",
    about: "The same steps for every item of a list, at once; the results come back as a list.",
    text: `version: v1
type: flow
steps:
  - type: foreach
    name: pack
    iterationMapping:
      collection: $.items
      item: item
      index: number
    steps:
      - type: pass
        name: label
        outputMappings:
          - target: label
            source: $input.item
          - target: number
            source: $input.number
    outputMappings:
      - target: labels
        source: $local[*].label
`,
  },
];
