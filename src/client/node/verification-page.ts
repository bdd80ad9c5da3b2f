import type { LoggedReceipt, ProvenHost, VerificationState } from './verification-log.ts'

const SIMULATED = 'proven on a simulated platform, which proves nothing about any machine'

/** The page at `/verification` for people: no script, no further resources. */
export function verificationPage({
  hosts,
  problem,
  proven,
  receipts,
  router,
  simulated,
}: VerificationState): string {
  const proof = simulated ? SIMULATED : 'proven'
  const verdict = proven ? proof : problem === null ? 'not asked yet' : 'refused'
  const why =
    problem === null ? '' : `<p role="alert">${escape(problem.at)}: ${escape(problem.message)}</p>`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escape(router)}: ${verdict}</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid #ccc; overflow-wrap: anywhere }
.ok { color: #0a6b2d } .bad { color: #b00020; font-weight: bold } code { overflow-wrap: anywhere }
</style>
<h1>${escape(router)}: <span class="${proven && !simulated ? 'ok' : 'bad'}">${verdict}</span></h1>
${why}
${hosts.map(hostSection).join('\n')}
<h2>Receipts</h2>
${receiptTable(receipts)}
</html>
`
}

function hostSection(host: ProvenHost): string {
  const rows = host.checks.map(
    ({ detail, name, ok, proves }) =>
      `<tr><td class="${ok ? 'ok' : 'bad'}">${ok ? 'holds' : 'FAILED'}</td><td>${escape(name)}</td><td>${escape(proves)}</td><td>${escape(detail)}</td></tr>`,
  )
  const notes = host.notes.map((note) => `<li>${escape(note)}</li>`).join('')
  return `<h2>Host with the key <code>${escape(host.tls_spki_sha256)}</code></h2>
<p>Proven ${escape(host.proven_at)}, until ${escape(host.expires_at)}; ${escape(host.workload)}, release <code>${escape(host.workload_identity_tag)}</code>, environment ${escape(host.environment)}.</p>
<ul>${notes}</ul>
<table><thead><tr><th>Result</th><th>Check</th><th>What it proves</th><th>Seen</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

function receiptTable(receipts: readonly LoggedReceipt[]): string {
  if (receipts.length === 0) return '<p>None yet.</p>'
  const rows = receipts.map(({ at, failed, holds, id, path, route, simulated }) => {
    const verdict = holds ? (simulated ? 'holds (simulated platform)' : 'holds') : failed.join(', ')
    return `<tr><td class="${holds ? 'ok' : 'bad'}">${escape(verdict)}</td><td>${escape(at)}</td><td>${escape(path)}</td><td>${escape(route ?? '')}</td><td><code>${escape(id ?? '')}</code></td></tr>`
  })
  return `<table><thead><tr><th>Verdict</th><th>When</th><th>Path</th><th>Route</th><th>Receipt</th></tr></thead><tbody>${rows.join('')}</tbody></table>`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

/** Evidence comes from others; it must not become markup. */
function escape(text: string): string {
  return text.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char)
}
