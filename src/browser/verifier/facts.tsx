import { toHex } from '../../protocol/bytes.ts'
import { REPORT_DATA_V2 } from '../../protocol/envelope.ts'
import { summarizeSnp } from '../../verify/snp/snp-summary.ts'
import type { ReceiptReport } from './judge-receipt.ts'
import type { RouterReport } from './judge-router.ts'

type Fact = readonly [name: string, value: string | undefined]

function Facts({ title, lead, facts }: { title: string; lead: string; facts: readonly Fact[] }) {
  const known = facts.filter(([, value]) => value !== undefined && value !== '')
  if (known.length === 0) return null
  return (
    <section class="facts" aria-label={title}>
      <h3>{title}</h3>
      <p class="hint">{lead}</p>
      <dl>
        {known.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <samp>{value}</samp>
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** The content of a router's evidence; it is only as reliable as the verdict above it. */
export function RouterFacts({ report, router }: { report: RouterReport; router: string }) {
  const { envelope, bundle, result } = report
  const snp = result?.report && summarizeSnp(result.report)
  const binding = envelope?.report_data_binding
  const manifest = result?.manifest
  const page = manifest?.verifier_digest
  return (
    <>
      <Facts
        title="What the evidence says"
        lead="As the router shows it. It is worth what the verdict above says of it."
        facts={[
          ['TLS key (SHA-256 of its SPKI)', envelope?.tls_spki_sha256],
          ['Receipt key', binding?.receipt_key_thumbprint],
          [
            'Configuration',
            binding?.label === REPORT_DATA_V2 ? binding.configuration_sha256 : undefined,
          ],
          ['Guest measured', snp?.measurement],
          ['Processor', snp?.product],
          ['Firmware', tcbText(snp?.reported_tcb)],
          ['Guest policy', snp && `${snp.policy}, debugging ${snp.dbgstat}, VMPL ${snp.vmpl}`],
          ['Chip', result?.report && toHex(result.report.chipId.slice(0, 16))],
          ['Release', manifest && `${manifest.workload} ${manifest.version}`],
          ['Image', manifest?.image_digest],
          ['Worker', manifest?.binary_digest],
          ['Verifier page of this release', page],
          [
            'Trust bundle',
            bundle &&
              `version ${bundle.version}, ${bundle.environment}, until ${bundle.expires_at}`,
          ],
          ['Evidence issued at', envelope?.issued_at],
          ['Nonce of this page', report.nonce],
        ]}
      />
      {envelope && <CompareKey router={router} spki={envelope.tls_spki_sha256} />}
    </>
  )
}

const tcbText = (tcb: object | null | undefined) =>
  Object.entries(tcb ?? {})
    .map(([part, level]) => `${part} ${level}`)
    .join(', ')

/** A page cannot see the certificate of its own connection, so this comparison needs another tool. */
function CompareKey({ router, spki }: { router: string; spki: string }) {
  const url = URL.canParse(router) ? new URL(router) : undefined
  if (url?.protocol !== 'https:') return null
  const address = `${url.hostname}:${url.port === '' ? '443' : url.port}`
  const command = `openssl s_client -connect ${address} </dev/null 2>/dev/null | openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum`
  return (
    <section class="facts" aria-label="Your own connection">
      <h3>Does your connection end in this enclave?</h3>
      <p>
        No web page can see the TLS key of its own connection, so this one check is not made here.
        The command below must print <samp>{spki}</samp>. The client library, the loopback proxy and{' '}
        <code>verify attestation</code> make this check themselves, on every connection.
      </p>
      <pre tabIndex={0}>{command}</pre>
    </section>
  )
}

/** The claims of a receipt; they are only as reliable as the verdict above them. */
export function ReceiptFacts({ report }: { report: ReceiptReport }) {
  const { claims, compared, ok, simulated, provider } = report
  if (claims === undefined) return null
  const hop = claims.inference_attestation ?? claims.provider_attestation
  return (
    <>
      <section class="facts" aria-label="What this proves">
        <h3>Which answer this is about</h3>
        <p>{sentence(report)}</p>
        {!ok && <p class="fault">As long as a check fails, none of this is proven.</p>}
        {ok && simulated && <p class="fault">On a simulated platform none of this is proven.</p>}
        {(!compared.request || !compared.response) && (
          <p class="hint">
            {compared.request || compared.response
              ? 'Only one of the two bodies was'
              : 'Neither body was'}{' '}
            compared. Bring the request as you sent it and the answer as you got it, and the receipt
            tells whether it is about them.
          </p>
        )}
      </section>
      <Facts
        title="What the receipt says"
        lead="Read after its signature was verified."
        facts={[
          ['Id', claims.jti],
          ['Issued', new Date(claims.iat * 1000).toISOString()],
          ['Endpoint', claims.endpoint],
          ['Route asked for', claims.requested_route],
          ['Route that answered', claims.routed_model],
          ['Failover', claims.failover ? 'yes' : 'no'],
          ['Tokens', `${claims.prompt_tokens} in, ${claims.completion_tokens} out`],
          ['Your request', claims.client_request_digest],
          ['Your answer', claims.client_response_digest],
          ["The provider's request", claims.request_digest],
          ["The provider's answer", claims.response_digest],
          ['Configuration', claims.configuration_sha256],
          ['Router', hopText(claims.router_attestation)],
          ['Provider', hop && `${hopText(hop)} (${STANDING[provider]})`],
          ['Signed with', claims.receipt_signature.kid],
        ]}
      />
    </>
  )
}

const STANDING: Readonly<Record<ReceiptReport['provider'], string>> = {
  unattested: 'not attested',
  recorded: 'as the router recorded it',
  rejudged: 'judged again here',
}

function hopText(hop: {
  tee?: string | undefined
  attestation_strength: string
  verified: boolean
}) {
  return `${hop.tee ?? 'no enclave'}, ${hop.attestation_strength}, ${hop.verified ? 'verified' : 'not verified'} by the router`
}

function sentence({ claims, compared, provider }: ReceiptReport): string {
  if (claims === undefined) return ''
  const bodies = [
    compared.request && 'the request that you brought',
    compared.response && 'the answer that you brought',
  ]
  const about = bodies.filter((body) => body !== false).join(' and ')
  const which = about === '' ? 'An exchange' : `The exchange with ${about}`
  const when = new Date(claims.iat * 1000).toISOString()
  const providers = {
    unattested: 'The provider was not attested.',
    recorded:
      'That the provider ran in an enclave is what the router recorded; it was not judged again here.',
    rejudged: 'The provider ran in an enclave that your policy accepts.',
  }
  return `${which} was answered by ${claims.routed_model} (asked for: ${claims.requested_route}) at ${when}, through the router whose enclave holds the key that signed. ${providers[provider]}`
}
