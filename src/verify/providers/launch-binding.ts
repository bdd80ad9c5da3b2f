import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

/**
 * HOST_DATA of SEV-SNP and MRCONFIGID of TDX are set by the host that starts a guest, and what they name can be the whole
 * workload: where a measurement is that of a shared runtime, nothing else tells one tenant from another. So a value
 * that is not pinned is refused, and a guest without one is not what was pinned.
 * @throws EvidenceRefused when the evidence does not meet these rules
 */
export function requireLaunchBinding(
  name: 'host_data' | 'mr_config_id',
  value: Bytes,
  pinned: readonly string[] | undefined,
): void {
  const unset = value.every((byte) => byte === 0)
  const accepted = pinned === undefined ? unset : pinned.includes(toHex(value))
  if (!accepted) throw new EvidenceRefused('launch_binding', [name])
}
