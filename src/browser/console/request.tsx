import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import * as z from 'zod'
import { ago, count, euros } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'
import { StatusBadge } from './status-badge.tsx'

const requestSchema = z.object({
  request_id: z.string(),
  state: z.string(),
  customer_id: z.string(),
  key_prefix: z.string().nullable(),
  reserved: z.object({ amount_eur: z.string(), at: z.string(), expires_at: z.string() }).nullable(),
  settled: z
    .object({
      at: z.string(),
      route: z.string(),
      provider: z.string(),
      prompt_tokens: z.number(),
      completion_tokens: z.number(),
      audio_seconds: z.number().nullable(),
      cost_eur: z.string(),
      failover: z.boolean(),
      usage_capped: z.boolean(),
    })
    .nullable(),
  receipt: z
    .object({
      id: z.string(),
      sha256: z.string(),
      kid: z.string(),
      issued_at: z.string(),
      expires_at: z.string(),
      stored: z.boolean(),
      evidence: z.array(z.object({ sha256: z.string(), stored: z.boolean() })),
      envelopes: z.array(z.object({ sha256: z.string(), first_seen_at: z.string() })),
    })
    .nullable(),
})

type Followed = z.output<typeof requestSchema>

/** @param id the id of the request to show; undefined for none */
export function RequestView({ id, ...props }: ViewProps & { readonly id: string | undefined }) {
  const path = id === undefined ? undefined : `/admin/requests/${encodeURIComponent(id)}`
  const known = useData(props, path, requestSchema)
  return (
    <Panel
      title="One request"
      takesFocus
      lead="From the key to the receipt, in ids and numbers: what was asked and answered is stored nowhere."
    >
      <Search key={id ?? ''} id={id ?? ''} />
      {id !== undefined && <LoadState {...known} />}
      {known.data && <Steps followed={known.data} now={props.now} />}
    </Panel>
  )
}

function Search({ id }: { readonly id: string }) {
  const [text, setText] = useState(id)
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const wanted = text.trim()
        if (wanted !== '') globalThis.location.hash = `#/requests/${encodeURIComponent(wanted)}`
      }}
    >
      <label for="request-id">Id of the request (x-request-id of the answer)</label>
      <input
        id="request-id"
        type="text"
        value={text}
        spellcheck={false}
        autocomplete="off"
        placeholder="7f3c2d1e-…"
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
      <button type="submit" class="go">
        Follow
      </button>
    </form>
  )
}

function Steps({ followed, now }: { readonly followed: Followed; readonly now: number }) {
  const { customer_id: customer, key_prefix: key, reserved, settled, receipt, state } = followed
  return (
    <ol class="steps">
      <Step name="Key" state={key === null ? 'gone' : 'known'}>
        <Line name="Customer">
          <a href={`#/customers/${customer}`}>
            <samp>{customer}</samp>
          </a>
        </Line>
        <Line name="Key">{key === null ? 'erased with its customer' : <samp>{key}</samp>}</Line>
      </Step>
      <Step name="Admission" state={reserved === null ? 'closed' : 'open'}>
        {reserved === null ? (
          <Line name="Held">nothing any more</Line>
        ) : (
          <Line name="Held">
            {euros(reserved.amount_eur)}, {ago(reserved.at, now)}; given back{' '}
            {ago(reserved.expires_at, now)} at the latest
          </Line>
        )}
      </Step>
      <Step name="Bill" state={state}>
        {settled === null ? <Line name="State">not in the ledger</Line> : <Bill {...settled} />}
      </Step>
      <Step
        name="Receipt"
        state={receipt === null ? 'none' : receipt.stored ? 'stored' : 'expired'}
      >
        {receipt === null ? (
          <Line name="Receipt">none was issued, or it is gone</Line>
        ) : (
          <ReceiptLines receipt={receipt} now={now} />
        )}
      </Step>
    </ol>
  )
}

function Bill({ at, route, provider, cost_eur: cost, ...rest }: NonNullable<Followed['settled']>) {
  return (
    <>
      <Line name="Route">
        <code>{route}</code> of {provider}
        {rest.failover && ' (a failover)'}
      </Line>
      <Line name="Counted">
        {count(rest.prompt_tokens)} tokens in, {count(rest.completion_tokens)} out
        {rest.audio_seconds !== null && `, ${count(rest.audio_seconds)} s of audio`}
        {rest.usage_capped && ' (capped: the provider claimed more)'}
      </Line>
      <Line name="Cost">{euros(cost)}</Line>
      <Line name="At">
        <time dateTime={at}>{new Date(at).toLocaleString()}</time>
      </Line>
    </>
  )
}

interface ReceiptProps {
  readonly receipt: NonNullable<Followed['receipt']>
  readonly now: number
}

function ReceiptLines({ receipt, now }: ReceiptProps) {
  return (
    <>
      <Line name="Id">
        <samp>{receipt.id}</samp>
      </Line>
      <Line name="SHA-256">
        <samp>{receipt.sha256}</samp>
      </Line>
      <Line name="Kept">
        {receipt.stored ? `ends ${ago(receipt.expires_at, now)}` : 'past its retention'}
      </Line>
      <Line name="Signing key">
        <samp>{receipt.kid}</samp>
      </Line>
      {receipt.envelopes.map(({ sha256, first_seen_at: seen }) => (
        <Line key={sha256} name="Vouched for by">
          <a href={`/attestation/${sha256}`}>
            <samp>{sha256}</samp>
          </a>{' '}
          (first served {ago(seen, now)})
        </Line>
      ))}
      {receipt.evidence.map(({ sha256, stored }) => (
        <Line key={sha256} name="Refers to">
          <samp>{sha256}</samp> {stored ? '' : '(not stored any more)'}
        </Line>
      ))}
    </>
  )
}

interface StepProps {
  readonly name: string
  readonly state: string
  readonly children: ComponentChildren
}

function Step({ name, state, children }: StepProps) {
  return (
    <li>
      <h3>
        {name} <StatusBadge text={state} />
      </h3>
      <dl>{children}</dl>
    </li>
  )
}

function Line({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}
