import * as z from 'zod'
import { providerProofSchema, type ProviderProof } from '../../protocol/provider-proof.ts'
import { ago } from './format.ts'
import { Panel, LoadState } from './panel.tsx'
import { useData } from './use-data.ts'
import type { ViewProps } from './view.ts'
import { StatusBadge } from './status-badge.tsx'

const listSchema = z.object({ data: z.array(providerProofSchema) })

export function Providers(props: ViewProps) {
  const known = useData(props, '/admin/providers', listSchema)
  return (
    <Panel
      title="Providers"
      takesFocus
      lead="How far the daemon has proven each provider, check by check. An attested one gets nothing while it is not proven; one without an adapter is never proven."
    >
      <LoadState {...known} />
      {known.data?.data.length === 0 && <p class="empty">No providers are configured.</p>}
      <div class="stack">
        {known.data?.data.map((one) => (
          <ProviderCard key={one.provider} provider={one} now={props.now} />
        ))}
      </div>
    </Panel>
  )
}

function ProviderCard({
  provider: one,
  now,
}: {
  readonly provider: ProviderProof
  readonly now: number
}) {
  const { provider, checks, state, reason } = one
  const failed = checks.filter(({ ok }) => !ok).length
  return (
    <article class="card" aria-label={provider}>
      <h3>
        {provider} <StatusBadge text={state} />{' '}
        {one.attestation_strength !== null && one.attestation_strength !== state && (
          <StatusBadge text={one.attestation_strength} />
        )}
      </h3>
      {reason !== null && <p class="fault">{reason}</p>}
      <dl class="facts-row">
        <Fact name="Adapter" text={one.adapter} />
        <Fact name="Verified" text={ago(one.verified_at, now)} />
        <Fact name="Expires" text={ago(one.expires_at, now)} />
        <Fact name="Evidence (SHA-256)" text={one.evidence_sha256 ?? '–'} />
      </dl>
      {checks.length > 0 && (
        <details open={failed > 0}>
          <summary>
            {failed > 0 ? `${failed} checks failed` : `${checks.length} checks hold`}
          </summary>
          <ul class="check-list">
            {checks.map(({ name, ok }) => (
              <li key={name} data-ok={ok}>
                <span class="hidden">{ok ? 'holds: ' : 'failed: '}</span>
                {name.replaceAll('_', ' ')}
              </li>
            ))}
          </ul>
        </details>
      )}
    </article>
  )
}

export function Fact({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  )
}
