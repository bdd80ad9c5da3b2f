import { Command, InvalidArgumentError } from 'commander'
import { fromHex, fromUtf8, type Bytes } from '../../protocol/bytes.ts'
import { headline } from '../../verify/headline.ts'
import { STANDALONE_POLICY } from '../../verify/snp/policy.ts'
import { REPORT_BYTES } from '../../verify/snp/report-layout.ts'
import { verifySnp } from '../../verify/snp/verify-snp.ts'
import { parseNow } from './parse-now.ts'
import { report } from './print.ts'
import { readInput, readText } from './read-input.ts'

interface SnpCommandOptions {
  readonly report: string
  readonly chain: string
  readonly crl?: string
  readonly requireCrl?: boolean
  readonly now?: number
  readonly minReportVersion: number
  readonly json?: boolean
}

/** `verify snp --report <file> --chain <pem>`: a simulated platform is always refused. */
export function snpCommand(): Command {
  return new Command('snp')
    .description('Verifies a SEV-SNP report against its certificate chain and the roots of AMD.')
    .requiredOption('--report <file>', 'the report, binary or in hex')
    .requiredOption('--chain <pem>', 'VCEK or VLEK, ASK, ARK in PEM')
    .option('--crl <file>', "AMD's revocation list in DER")
    .option('--require-crl', "fail without AMD's revocation list")
    .option('--now <time>', 'judge as of this time (RFC 3339)', parseNow)
    .option('--min-report-version <n>', 'lowest accepted report version', parseVersion, 3)
    .option('--json', 'print JSON')
    .action(verifyReport)
}

async function verifyReport(options: SnpCommandOptions): Promise<void> {
  const result = await verifySnp(
    unwrapHex(await readInput(options.report)),
    await readText(options.chain),
    {
      now: options.now ?? Date.now(),
      policy: { ...STANDALONE_POLICY, minReportVersion: options.minReportVersion },
      crl: options.crl === undefined ? undefined : await readInput(options.crl),
      requireCrl: options.requireCrl,
    },
  )
  const proven =
    'a genuine AMD SEV-SNP report of a closed guest; whose guest it is, nothing here tells'
  const unchecked = options.crl === undefined && options.requireCrl !== true
  const notes = unchecked
    ? ["revocation: AMD's revocation list was not checked, for none was given"]
    : []
  report({ ...result, notes, summary: headline(result, { proven }) }, options.json === true)
}

/** Decodes a report in hex; returns anything else unchanged. */
function unwrapHex(bytes: Bytes): Bytes {
  if (bytes.length < 2 * REPORT_BYTES || bytes.length > 2 * REPORT_BYTES + 2) return bytes
  try {
    return fromHex(fromUtf8(bytes).trim().toLowerCase())
  } catch {
    return bytes
  }
}

function parseVersion(text: string): number {
  if (!/^[2-5]$/.test(text)) throw new InvalidArgumentError('a report version is 2, 3, 4 or 5.')
  return Number(text)
}
