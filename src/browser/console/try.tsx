import { useEffect, useId, useState } from 'preact/hooks'
import * as z from 'zod'
import { createRouterReader } from '../parts/router-reader.ts'
import { ReceiptFacts } from '../verifier/facts.tsx'
import { NO_INPUTS, readRequirements, readReceiptInput, type Inputs } from '../verifier/inputs.ts'
import { judgeReceipt, type ReceiptReport } from '../verifier/judge-receipt.ts'
import { Report } from '../verifier/report.tsx'
import { createApi } from './api.ts'
import { ask, type Asked, type Message } from './ask.ts'
import type { ConsoleDeps } from './deps.ts'
import { TrustFields } from './proof.tsx'

const modelsSchema = z.object({ data: z.array(z.looseObject({ id: z.string() })) })
const EFFORTS = ['', 'off', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

interface Turn {
  readonly question: string
  readonly text: string
  /** The result of verifying its receipt; undefined until it is known. */
  readonly receipt?: ReceiptReport | string
  readonly problem?: string
}

/** The settings of the next request. */
interface Settings {
  readonly model: string
  readonly reasoning: string
  readonly failover: string
}

/** A chat for customers. Every answer shows what its receipt proves. */
export function Playground({ deps }: { readonly deps: ConsoleDeps }) {
  const [inputs, setInputs] = useState<Inputs>(NO_INPUTS)
  const [settings, setSettings] = useState<Settings>({ model: '', reasoning: '', failover: '' })
  const models = useModels()
  const change = (changes: Partial<Inputs>) => setInputs((before) => ({ ...before, ...changes }))
  const set = (name: keyof Settings) => (value: string) =>
    setSettings((before) => ({ ...before, [name]: value }))
  const model = settings.model === '' ? (models[0] ?? '') : settings.model
  const { turns, busy, send } = useChat({ ...settings, model }, inputs, deps)
  return (
    <>
      <header class="banner">
        <h1>
          Confidential Model Router <small>Playground</small>
        </h1>
        <nav aria-label="Pages">
          <a href="/console">Console</a>
        </nav>
      </header>
      <main class="try">
        <form class="panel" aria-label="Settings" onSubmit={(event) => event.preventDefault()}>
          <KeyField inputs={inputs} change={change} />
          <Choice label="Model" value={model} choose={set('model')} options={models} />
          <Choice
            label="Reasoning"
            value={settings.reasoning}
            choose={set('reasoning')}
            options={EFFORTS}
          />
          <Choice
            label="Failover to"
            value={settings.failover}
            choose={set('failover')}
            options={['', ...models]}
          />
          <TrustFields inputs={inputs} change={change} />
        </form>
        <section class="chat" aria-label="Chat">
          <ol aria-live="polite">
            {turns.map((turn, index) => (
              <li key={index}>
                <TurnView turn={turn} />
              </li>
            ))}
          </ol>
          <AskForm busy={busy} ready={inputs.apiKey !== '' && models.length > 0} send={send} />
        </section>
      </main>
    </>
  )
}

/** The messages of a chat; `send` adds one and never rejects. */
function useChat({ model, reasoning, failover }: Settings, inputs: Inputs, deps: ConsoleDeps) {
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const [busy, setBusy] = useState(false)
  const send = async (question: string) => {
    const index = turns.length
    const put = (turn: Omit<Turn, 'question'>) =>
      setTurns((before) => [...before.slice(0, index), { question, ...turn }])
    setBusy(true)
    put({ text: '' })
    const messages = [...turns.flatMap(messagesOf), { role: 'user' as const, content: question }]
    const others = failover === '' ? [] : [failover]
    try {
      const { apiKey } = inputs
      const asked = await ask({ apiKey, model, reasoning, failover: others, messages }, (text) =>
        put({ text }),
      )
      put({ text: asked.text, receipt: await judge(asked, inputs, deps) })
    } catch (error) {
      put({
        text: '',
        problem: error instanceof Error ? error.message : 'The question was not answered.',
      })
    } finally {
      setBusy(false)
    }
  }
  return { turns, busy, send }
}

function messagesOf({ question, text }: Turn): Message[] {
  if (text === '') return []
  return [
    { role: 'user', content: question },
    { role: 'assistant', content: text },
  ]
}

/** A receipt's report, or why there is none. */
async function judge(
  asked: Asked,
  inputs: Inputs,
  deps: ConsoleDeps,
): Promise<ReceiptReport | string> {
  if (asked.receiptId === undefined) return 'This answer has no receipt.'
  if (inputs.rootKey.trim() === '')
    return 'Give the release root, and the next receipt is verified.'
  try {
    const input = readReceiptInput({ ...inputs, receiptId: asked.receiptId })
    const brought = { ...input, request: asked.request, response: asked.response }
    const router = createRouterReader(new URL(deps.origin))
    return await judgeReceipt(brought, router, readRequirements(inputs), deps)
  } catch (error) {
    return error instanceof Error ? error.message : 'The receipt cannot be judged.'
  }
}

function useModels(): readonly string[] {
  const [models, setModels] = useState<readonly string[]>([])
  useEffect(() => {
    createApi('none')
      .json('/v1/models?type=chat', modelsSchema)
      .then(
        ({ data }) => setModels(data.map(({ id }) => id)),
        () => setModels([]),
      )
  }, [])
  return models
}

interface FieldsProps {
  readonly inputs: Inputs
  readonly change: (changes: Partial<Inputs>) => void
}

function KeyField({ inputs, change }: FieldsProps) {
  return (
    <div class="field">
      <label for="key">API key</label>
      <input
        id="key"
        type="password"
        autocomplete="off"
        value={inputs.apiKey}
        aria-describedby="key-hint"
        onInput={({ currentTarget }) => change({ apiKey: currentTarget.value.trim() })}
      />
      <p class="hint" id="key-hint">
        Kept in the memory of this page alone. Answers are billed to it.
      </p>
    </div>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly choose: (value: string) => void
  readonly options: readonly string[]
}

function Choice({ label, value, choose, options }: ChoiceProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} value={value} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option === '' ? '(as by default)' : option}
          </option>
        ))}
      </select>
    </div>
  )
}

interface AskProps {
  readonly busy: boolean
  readonly ready: boolean
  readonly send: (question: string) => Promise<void>
}

function AskForm({ busy, ready, send }: AskProps) {
  const [text, setText] = useState('')
  return (
    <form
      class="ask"
      onSubmit={(event) => {
        event.preventDefault()
        if (busy || text.trim() === '') return
        setText('')
        void send(text)
      }}
    >
      <label class="hidden" for="question">
        Your message
      </label>
      <textarea
        id="question"
        rows={3}
        value={text}
        placeholder={ready ? 'Ask something' : 'Give an API key first'}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <button type="submit" class="go" disabled={busy || !ready}>
        {busy ? 'Answering …' : 'Send'}
      </button>
    </form>
  )
}

function TurnView({ turn: { question, text, receipt, problem } }: { readonly turn: Turn }) {
  return (
    <>
      <p class="question">{question}</p>
      {text !== '' && <div class="answer">{text}</div>}
      {problem && (
        <p class="fault" role="alert">
          {problem}
        </p>
      )}
      {typeof receipt === 'string' && <p class="hint">{receipt}</p>}
      {typeof receipt === 'object' && (
        <details class="receipt" data-state={stateOf(receipt)}>
          <summary>{receipt.summary}</summary>
          <Report kind="receipt" report={receipt}>
            <ReceiptFacts report={receipt} />
          </Report>
        </details>
      )}
    </>
  )
}

const stateOf = ({ ok, simulated }: ReceiptReport) =>
  ok ? (simulated ? 'simulated' : 'holds') : 'failed'
