import { toHex, type Bytes } from '../../protocol/bytes.ts'
import { EvidenceRefused } from '../evidence-refused.ts'

/**
 * Checks HOST_DATA of SEV-SNP or MRCONFIGID of TDX. The host that starts a guest sets them, and they may name the
 * complete workload: where the measurement is that of a shared runtime, nothing else distinguishes one tenant from
 * another. So a value that is not pinned is refused, and so is a guest without the pinned value.
 * @throws EvidenceRefused `launch_binding` when the value is not accepted
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
