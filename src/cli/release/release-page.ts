/** The content of a release page. Every value was verified, or is there for the reader to compare. */
export interface ReleaseFacts {
  readonly version: string
  readonly workload: string
  readonly commit: string
  readonly identityTag: string
  /** Files of the guest image and of the release, by name, with SHA-256. */
  readonly files: readonly (readonly [name: string, sha256: string])[]
  /** dm-verity root hash of the root disk. */
  readonly rootHash: string
  readonly bundle: {
    readonly version: number
    readonly environment: string
    readonly expiresAt: string
  }
  readonly measurements: readonly Measured[]
  /** The entries of the documents in the public log; empty where they are not logged. */
  readonly logEntries: readonly LogEntry[]
}

/** A launch measurement that the bundle allows, and the guest with this measurement. */
export interface Measured {
  readonly measurement: string
  readonly vcpus: number
  readonly cpuSignature: string
  readonly guestFeatures: string
  readonly firmwareSha256: string
  readonly commandLine: string
}

export interface LogEntry {
  readonly document: string
  readonly log: string
  readonly index: number
  readonly treeSize: number
}

/** A part of a page that both formats can represent. */
type Block =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'table'; readonly head: readonly string[]; readonly rows: readonly string[][] }
  | { readonly kind: 'code'; readonly lines: readonly string[] }

interface Section {
  readonly title: string
  readonly blocks: readonly Block[]
}

export function releaseMarkdown(facts: ReleaseFacts): string {
  const sections = sectionsOf(facts).flatMap(({ title, blocks }) => [
    `## ${title}`,
    ...blocks.map(blockMarkdown),
  ])
  return `${[`# ${titleOf(facts)}`, ...sections].join('\n\n')}\n`
}

/** The page as one self-contained HTML file. */
export function releaseHtml(facts: ReleaseFacts): string {
  const title = escapeHtml(titleOf(facts))
  const body = sectionsOf(facts).map(
    ({ title: heading, blocks }) =>
      `<h2>${escapeHtml(heading)}</h2>\n${blocks.map(blockHtml).join('\n')}`,
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, pre { font-size: 13px; overflow-wrap: anywhere }
pre { white-space: pre-wrap; background: #8881; padding: 1rem }
table { border-collapse: collapse } th, td { text-align: left; vertical-align: top; padding: .3rem 1rem .3rem 0 }
</style>
<h1>${title}</h1>
${body.join('\n')}
</html>
`
}

function titleOf({ workload, version }: ReleaseFacts): string {
  return `${workload} ${version}`
}

function sectionsOf(facts: ReleaseFacts): readonly Section[] {
  return [
    { title: 'What it is', blocks: [identity(facts)] },
    { title: 'Files', blocks: [files(facts)] },
    { title: 'Launch measurements', blocks: measurements(facts) },
    { title: 'In the public log', blocks: logged(facts) },
    { title: 'Rebuild and compare', blocks: rebuild(facts) },
  ]
}

function identity({ version, commit, identityTag, bundle }: ReleaseFacts): Block {
  return table(
    ['', ''],
    [
      ['Version', version],
      ['Commit', commit],
      ['Identity tag (SHA-256 of the signed manifest)', identityTag],
      [
        'Trust bundle',
        `version ${bundle.version}, ${bundle.environment}, until ${bundle.expiresAt}`,
      ],
    ],
  )
}

function files({ files: named, rootHash }: ReleaseFacts): Block {
  const rows = named.map(([name, sha256]) => [name, sha256])
  return table(['File', 'SHA-256'], [...rows, ['root.img, dm-verity root hash', rootHash]])
}

function measurements({ measurements: allowed }: ReleaseFacts): Block[] {
  const rows = allowed.map(({ vcpus, cpuSignature, measurement }) => [
    String(vcpus),
    cpuSignature,
    measurement,
  ])
  const [first] = allowed
  return [
    text(
      'A guest of this release has one of these in its SEV-SNP report, by its number of processors.',
    ),
    table(['vCPUs', 'CPU signature', 'Measurement'], rows),
    ...(first === undefined
      ? []
      : [
          text('Firmware (SHA-256) and kernel command line that they are for:'),
          code([
            ...new Set(allowed.map(({ firmwareSha256: firmware }) => firmware)),
            ...new Set(allowed.map(({ commandLine }) => commandLine)),
          ]),
        ]),
  ]
}

function logged({ logEntries: entries }: ReleaseFacts): Block[] {
  if (entries.length === 0) return [text('The documents of this release stand in no public log.')]
  const rows = entries.map(({ document, log, index, treeSize }) => [
    document,
    log,
    String(index),
    String(treeSize),
  ])
  return [table(['Document', 'Log', 'Entry', 'Of a tree of'], rows)]
}

function rebuild({ commit, measurements: allowed }: ReleaseFacts): Block[] {
  return [
    text(
      'Anybody can build the image again and get the same bytes, on Linux on x86-64 (docs/image.md):',
    ),
    code([
      `git checkout ${commit}`,
      'npm ci',
      'npm run image            # then compare dist/image/image.json and the digests above',
    ]),
    text('and compute each measurement from what was built and the firmware named above:'),
    code(
      allowed.map(
        ({ vcpus, cpuSignature, guestFeatures, commandLine }) =>
          `npm run -s release -- measure --ovmf OVMF.fd --kernel dist/image/vmlinuz --initrd dist/image/initrd.cpio --append '${commandLine.replaceAll("'", String.raw`'\''`)}' --vcpus ${vcpus} --vcpu-type ${cpuSignature} --guest-features ${guestFeatures}`,
      ),
    ),
  ]
}

const text = (words: string): Block => ({ kind: 'text', text: words })
const code = (lines: readonly string[]): Block => ({ kind: 'code', lines })
const table = (head: readonly string[], rows: readonly string[][]): Block => ({
  kind: 'table',
  head,
  rows,
})

function blockMarkdown(block: Block): string {
  if (block.kind === 'text') return escapeMarkdown(block.text)
  if (block.kind === 'code') return ['```sh', ...block.lines.map(oneLine), '```'].join('\n')
  const row = (cells: readonly string[]) => `| ${cells.map(escapeMarkdown).join(' | ')} |`
  const rule = `| ${block.head.map(() => '---').join(' | ')} |`
  return [row(block.head), rule, ...block.rows.map(row)].join('\n')
}

function blockHtml(block: Block): string {
  if (block.kind === 'text') return `<p>${escapeHtml(block.text)}</p>`
  if (block.kind === 'code') return `<pre>${block.lines.map(escapeHtml).join('\n')}</pre>`
  const row = (cells: readonly string[], tag: 'th' | 'td') =>
    `<tr>${cells.map((cell) => `<${tag}>${tag === 'td' ? `<code>${escapeHtml(cell)}</code>` : escapeHtml(cell)}</${tag}>`).join('')}</tr>`
  const body = block.rows.map((cells) => row(cells, 'td')).join('\n')
  return `<table>\n${row(block.head, 'th')}\n${body}\n</table>`
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
}

function escapeHtml(words: string): string {
  return words.replaceAll(/[&<>"]/g, (char) => ENTITIES[char] ?? char)
}

/** Escapes text of the release, such as a version or a command line, so that it cannot become markup. */
function escapeMarkdown(words: string): string {
  return oneLine(words).replaceAll(/[\\`*[\]<>|]/g, (char) => `\\${char}`)
}

function oneLine(words: string): string {
  return words.replaceAll(/[\r\n]+/g, ' ')
}
