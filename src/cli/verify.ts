import { Command } from 'commander'
import { attestationCommand } from './verify/attestation-command.ts'
import { bundleCommand } from './verify/bundle-command.ts'
import { InputError } from './verify/input-error.ts'
import { receiptCommand } from './verify/receipt-command.ts'
import { JUDGING } from './verify/print.ts'
import { snpCommand } from './verify/snp-command.ts'
import { ClientError } from '../client/errors.ts'
import { explainer } from './failure.ts'
import type { Subcommand } from './subcommand.ts'
import { MalformedEvidence } from '../protocol/malformed-evidence.ts'

/**
 * `verify`: checks every claim the router makes, trusting only AMD and the release root. Exits 0 when every check
 * passes, 1 when a check failed, 2 when the command or its input is invalid.
 */
export function verifySubcommand(): Subcommand {
  const command = new Command('verify')
    .description('Verifies attestation, receipts, SNP reports and trust bundles.')
    .configureHelp({ showGlobalOptions: true })
  for (const one of [attestationCommand(), receiptCommand(), snpCommand(), bundleCommand()]) {
    command.addCommand(one.copyInheritedSettings(command))
  }
  const explain = explainer({ told: [InputError, MalformedEvidence, ClientError], ...JUDGING })
  return { command, explain }
}
