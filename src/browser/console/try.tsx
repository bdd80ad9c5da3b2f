import { useRef, useState } from 'preact/hooks'
import { ReceiptFacts } from '../verifier/facts.tsx'
import { NO_INPUTS, type Inputs } from '../verifier/inputs.ts'
import type { ReceiptReport } from '../verifier/judge-receipt.ts'
import { Report } from '../verifier/report.tsx'
import { Banner } from './banner.tsx'
import { useChat, type Settings, type Turn } from './chat.ts'
import type { ConsoleDeps } from './deps.ts'
import { Guarantee } from './guarantee.tsx'
import { useGuest } from './guest.ts'
import { SettingsForm, useModels } from './playground-settings.tsx'

/** A chat for customers: encrypted to the proven guest, with the verified receipt of every answer. */
export function Playground({ deps }: { readonly deps: ConsoleDeps }) {
  const [inputs, setInputs] = useState<Inputs>(NO_INPUTS)
  const [settings, setSettings] = useState<Settings>({ model: '', reasoning: '', failover: '' })
  const { models, problem } = useModels()
  const guest = useGuest(inputs, deps)
  const change = (changes: Partial<Inputs>) => setInputs((before) => ({ ...before, ...changes }))
  const set = (name: keyof Settings) => (value: string) =>
    setSettings((before) => ({ ...before, [name]: value }))
  const model = settings.model === '' ? (models[0] ?? '') : settings.model
  const { turns, busy, send } = useChat({ ...settings, model }, inputs, deps)
  const lacking = lackOf({ guest: guest.state, key: inputs.apiKey, model })
  return (
    <>
      <Banner name="Playground" other={{ href: '/console', name: 'Console' }} />
      <main class="try" id="content">
        <SettingsForm
          inputs={inputs}
          change={change}
          settings={{ ...settings, model }}
          set={set}
          models={models}
          problem={problem}
        />
        <section class="chat" aria-label="Chat">
          <h2 class="hidden" tabIndex={-1}>
            Chat
          </h2>
          <Guarantee guest={guest} rootKey={inputs.rootKey} />
          <ol aria-live="polite" aria-busy={busy} aria-label="Messages">
            {turns.map((turn, index) => (
              <li key={index}>
                <TurnView turn={turn} waiting={busy && index === turns.length - 1} />
              </li>
            ))}
          </ol>
          <AskForm
            busy={busy}
            lacking={lacking}
            send={(question) => {
              if (guest.state === 'proven') void send(question, guest.client)
            }}
          />
        </section>
      </main>
    </>
  )
}

/** What the user must still provide before a message can be sent; empty when nothing is missing. */
function lackOf({
  guest,
  key,
  model,
}: {
  readonly guest: string
  readonly key: string
  readonly model: string
}): string {
  if (key === '') return 'Give an API key first.'
  if (guest === 'unknown') return 'Give the release root first.'
  if (guest === 'proving') return 'The router is being proven.'
  if (guest === 'refused') return 'This router is not proven.'
  return model === '' ? 'The router lists no models.' : ''
}

interface AskProps {
  readonly busy: boolean
  readonly lacking: string
  readonly send: (question: string) => void
}

function AskForm({ busy, lacking, send }: AskProps) {
  const [text, setText] = useState('')
  const form = useRef<HTMLFormElement>(null)
  return (
    <form
      ref={form}
      class="ask"
      onSubmit={(event) => {
        event.preventDefault()
        if (busy || lacking !== '' || text.trim() === '') return
        setText('')
        send(text)
      }}
    >
      <label class="hidden" for="question">
        Your message
      </label>
      <textarea
        id="question"
        rows={3}
        value={text}
        aria-describedby="lacking"
        placeholder="Ask something. Enter sends, Shift+Enter begins a new line."
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
          event.preventDefault()
          form.current?.requestSubmit()
        }}
      />
      <div class="send">
        <p class="hint" id="lacking" role="status">
          {lacking}
        </p>
        <button type="submit" class="go" disabled={busy || lacking !== ''}>
          {busy ? 'Answering …' : 'Send'}
        </button>
      </div>
    </form>
  )
}

function TurnView({ turn, waiting }: { readonly turn: Turn; readonly waiting: boolean }) {
  const { question, text, receipt, problem } = turn
  return (
    <>
      <p class="question">
        <span class="hidden">You: </span>
        {question}
      </p>
      {text === '' && waiting && <p class="working">Waiting for the answer …</p>}
      {text !== '' && (
        <div class="answer">
          <span class="hidden">Answer: </span>
          {text}
        </div>
      )}
      {problem !== undefined && (
        <p class="fault" role="alert">
          {problem}
        </p>
      )}
      {text !== '' && waiting && receipt === undefined && (
        <p class="hint">The receipt is verified once the answer is whole.</p>
      )}
      {typeof receipt === 'string' && <p class="fault">{receipt}</p>}
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
