import { useEffect, useState } from 'preact/hooks'
import { sha256Hex } from '../../protocol/digest.ts'
import type { Proof } from '../../client/browser.ts'
import { jwkThumbprint, es256JwkSchema } from '../../protocol/jwk.ts'
import type { Guest } from './guest.ts'

interface GuaranteeProps {
  readonly guest: Guest
  readonly rootKey: string
}

/** Shows what was verified before anything was sent, against which release root, and what that does not cover. */
export function Guarantee({ guest, rootKey }: GuaranteeProps) {
  return (
    <section class="guarantee" data-state={stateOf(guest)} aria-label="Protection">
      <div role="status">
        <Verdict guest={guest} />
      </div>
      {guest.state === 'proven' && <Details proof={guest.proof} rootKey={rootKey} />}
    </section>
  )
}

function stateOf(guest: Guest): string {
  if (guest.state !== 'proven') return guest.state
  return isSimulated(guest.proof) ? 'simulated' : 'proven'
}

const isSimulated = ({ checks }: Proof) => checks.some(({ name }) => name === 'simulated_platform')

function Verdict({ guest }: { readonly guest: Guest }) {
  if (guest.state === 'unknown') {
    return (
      <p>
        <strong>Nothing is sent yet.</strong> Give the release root: this page proves the router
        against it, and encrypts your messages to the guest that it has proven.
      </p>
    )
  }
  if (guest.state === 'proving') return <p>Proving the router …</p>
  if (guest.state === 'refused') {
    return (
      <p>
        <strong>This router is not proven. Nothing is sent.</strong> {guest.reason}
      </p>
    )
  }
  return isSimulated(guest.proof) ? (
    <p>
      <strong>Encrypted to a simulated guest.</strong> All {guest.proof.checks.length} checks hold,
      but the platform is simulated: this proves nothing about any machine.
    </p>
  ) : (
    <p>
      <strong>Encrypted to the proven guest.</strong> All {guest.proof.checks.length} checks of its
      evidence hold.
    </p>
  )
}

function Details({ proof, rootKey }: { readonly proof: Proof; readonly rootKey: string }) {
  const root = useText(() => jwkThumbprint(es256JwkSchema.parse(JSON.parse(rootKey))), [rootKey])
  const key = useText(
    async () => (proof.hpkeKeyConfig ? sha256Hex(proof.hpkeKeyConfig) : '–'),
    [proof],
  )
  return (
    <details>
      <summary>What was verified, and against what</summary>
      <dl>
        <div>
          <dt>Trust anchor: your release root (thumbprint)</dt>
          <dd>
            <samp>{root}</samp>
          </dd>
        </div>
        <div>
          <dt>It allows</dt>
          <dd>
            trust bundle {proof.bundle.version} for “{proof.bundle.environment}”, until{' '}
            {new Date(proof.bundle.expires_at).toLocaleString()}
          </dd>
        </div>
        <div>
          <dt>Hardware anchor</dt>
          <dd>
            {isSimulated(proof)
              ? 'a simulated root, as you allowed'
              : 'AMD’s root keys, which are built into this page'}
          </dd>
        </div>
        <div>
          <dt>Your messages are encrypted to the key (SHA-256)</dt>
          <dd>
            <samp>{key}</samp>
          </dd>
        </div>
        <div>
          <dt>Proven at</dt>
          <dd>{new Date(proof.provenAt).toLocaleString()}, for a nonce of this page</dd>
        </div>
      </dl>
      <ul class="check-list">
        {proof.checks.map(({ name, detail, proves }) => (
          <li key={name} data-ok="true" title={`${proves} ${detail}`}>
            <span class="hidden">holds: </span>
            {name.replaceAll('_', ' ')}
          </li>
        ))}
      </ul>
      <p class="hint">
        Whatever ends TLS before the guest sees your API key, the address and the sizes, and no
        message. This page itself came from the same router: for a verdict that does not depend on
        it, use a verifier page whose digest you checked.
      </p>
    </details>
  )
}

function useText(make: () => Promise<string>, inputs: readonly unknown[]): string {
  const [text, setText] = useState('')
  useEffect(() => {
    let current = true
    make().then(
      (made) => current && setText(made),
      () => current && setText('–'),
    )
    return () => {
      current = false
    }
  }, inputs)
  return text
}
