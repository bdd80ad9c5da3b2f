import {
  answering,
  chunk,
  completion,
  content,
  DONE,
  event,
  FIRST,
  ROLE,
  STOP,
  TEXT,
  usageFrame,
  usageMember,
} from '../answers.ts'
import { PROMPT_ESTIMATE } from '../ask.ts'
import { served, type ProviderCase } from './case.ts'

const WHOLE = JSON.stringify(completion())
const ESTIMATED = `${PROMPT_ESTIMATE}+7`
const END = STOP + usageFrame() + DONE

function delta(members: object): string {
  return event(chunk(members))
}

function toolCall(name: string, args: string, more: object = {}): object {
  return { type: 'function', function: { name, arguments: args }, ...more }
}

/** Habits of real servers that a client must not notice. */
export const DIALECT_CASES: readonly ProviderCase[] = [
  {
    name: 'cumulative usage in every chunk',
    failures: [21],
    script: answering(
      [
        ROLE,
        ...['Hello ', 'from ', 'the first.'].map((text, index) =>
          event(chunk({ content: text }, null, usageMember({ prompt: 7, completion: index + 1 }))),
        ),
        END,
      ].join(''),
      WHOLE,
    ),
    stream: served(),
  },
  {
    name: 'missing usage',
    failures: [1, 3, 20],
    script: answering(
      ROLE + TEXT + STOP + DONE,
      JSON.stringify(completion(undefined, { usage: undefined })),
    ),
    stream: served({ counted: ESTIMATED }),
    whole: served({ counted: ESTIMATED }),
  },
  {
    name: 'missing usage, and reasoning that the client does not want to see',
    failures: [3],
    more: { include_reasoning: false },
    script: answering(
      ROLE + delta({ reasoning: 'Hm. ' }) + TEXT + STOP + DONE,
      JSON.stringify(completion({ content: FIRST, reasoning: 'Hm. ' }, { usage: undefined })),
    ),
    stream: served({ counted: `${PROMPT_ESTIMATE}+9` }),
    whole: served({ counted: `${PROMPT_ESTIMATE}+9` }),
  },
  {
    name: 'missing usage, and a second choice',
    failures: [3],
    script: answering(
      ROLE + event({ choices: [{ index: 1, delta: { content: 'no' } }] }) + TEXT + STOP + DONE,
      WHOLE,
    ),
    stream: served({ counted: `${PROMPT_ESTIMATE}+8` }),
  },
  {
    name: 'usage that counts only the beginning',
    failures: [3],
    script: answering(
      event(chunk({ content: 'Hello ' }, null, usageMember({ prompt: 7, completion: 1 }))) +
        content('from ') +
        content('the first.') +
        STOP +
        DONE,
      WHOLE,
    ),
    stream: served({ counted: '7+6' }),
  },
  {
    name: 'usage of zeros',
    failures: [3],
    script: answering(
      ROLE + TEXT + STOP + usageFrame({ prompt: 0, completion: 0 }) + DONE,
      JSON.stringify(completion(undefined, usageMember({ prompt: 0, completion: 0 }))),
    ),
    stream: served({ counted: ESTIMATED }),
    whole: served({ counted: ESTIMATED }),
  },
  {
    name: 'usage that is no usage',
    failures: [3],
    script: answering(
      ROLE +
        TEXT +
        event(chunk({}, 'stop', { usage: { prompt_tokens: -1, completion_tokens: '5' } })) +
        DONE,
      JSON.stringify(completion(undefined, { usage: 'none' })),
    ),
    stream: served({ counted: ESTIMATED }),
    whole: served({ counted: ESTIMATED }),
  },
  {
    name: 'usage on the finish chunk',
    failures: [19],
    script: answering(ROLE + TEXT + event(chunk({}, 'stop', usageMember())) + DONE, WHOLE),
    stream: served(),
  },
  {
    name: 'chunks without choices ahead of all',
    failures: [19],
    script: answering(
      event({ choices: [], prompt_filter_results: [{}] }) + ROLE + TEXT + END,
      WHOLE,
    ),
    stream: served(),
  },
  {
    name: 'the role in every delta',
    failures: [23],
    script: answering(
      ['Hello ', 'from ', 'the first.']
        .map((text) => delta({ role: 'assistant', content: text }))
        .join('') + END,
      WHOLE,
    ),
    stream: served(),
  },
  {
    name: 'no role at all',
    failures: [23],
    script: answering(TEXT + END, JSON.stringify(completion({ role: undefined, content: FIRST }))),
    stream: served(),
    whole: served(),
  },
  {
    name: 'empty ids',
    script: answering(
      (ROLE + TEXT + END).replaceAll('"id":"gen-1"', '"id":""'),
      JSON.stringify(completion(undefined, { id: '' })),
    ),
    stream: served(),
    whole: served(),
  },
  {
    name: 'ids and models that change',
    script: answering(
      ROLE + TEXT.replace('gen-1', 'gen-2') + END.replaceAll('gen-1', 'gen-3'),
      WHOLE,
    ),
    stream: served(),
  },
  {
    name: 'tool indexes missing',
    failures: [22],
    script: answering(
      ROLE +
        delta({ tool_calls: [toolCall('first', '{"a":', { id: 'c1' })] }) +
        delta({ tool_calls: [{ function: { arguments: '1}' } }] }) +
        delta({ tool_calls: [toolCall('second', '{}', { id: 'c2' })] }) +
        event(chunk({}, 'tool_calls')) +
        usageFrame() +
        DONE,
      WHOLE,
    ),
    stream: served({ text: 'first#0{"a":1}second#1{}', finish: 'tool_calls' }),
  },
  {
    name: 'every tool call at index 0',
    failures: [22],
    script: answering(
      ROLE +
        delta({ tool_calls: [toolCall('first', '{}', { id: 'c1', index: 0 })] }) +
        delta({ tool_calls: [toolCall('second', '{}', { id: 'c2', index: 0 })] }) +
        event(chunk({}, 'tool_calls')) +
        usageFrame() +
        DONE,
      WHOLE,
    ),
    stream: served({ text: 'first#0{}second#1{}', finish: 'tool_calls' }),
  },
  {
    name: 'reasoning under its older name',
    failures: [24],
    script: answering(
      ROLE + delta({ reasoning_content: 'Hm. ' }) + TEXT + END,
      JSON.stringify(completion({ reasoning_content: 'Hm. ', content: FIRST })),
    ),
    stream: served({ text: `Hm. ${FIRST}` }),
    whole: served({ text: `Hm. ${FIRST}` }),
  },
  {
    name: 'reasoning under both names',
    failures: [24],
    script: answering(
      ROLE + delta({ reasoning_content: 'Hm. ', reasoning: 'Hm. ' }) + TEXT + END,
      JSON.stringify(completion({ reasoning: 'Hm. ', reasoning_content: 'Hm. ', content: FIRST })),
    ),
    stream: served({ text: `Hm. ${FIRST}` }),
    whole: served({ text: `Hm. ${FIRST}` }),
  },
  {
    name: 'nulls in every place',
    script: answering(
      ROLE +
        delta({
          role: null,
          content: 'Hello from the first.',
          tool_calls: null,
          reasoning: null,
          refusal: null,
        }) +
        event(chunk({ content: null }, 'stop', { usage: null })) +
        usageFrame() +
        DONE,
      JSON.stringify(completion({ content: FIRST, tool_calls: null, reasoning: null })),
    ),
    stream: served(),
    whole: served(),
  },
  {
    name: 'a second choice',
    script: answering(
      ROLE + event({ choices: [{ index: 1, delta: { content: 'no' } }] }) + content(FIRST) + END,
      WHOLE,
    ),
    stream: served(),
  },
]
