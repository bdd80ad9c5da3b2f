import { mapped, ruleTable, type MemberRule } from '../completion/member-rules.ts'

/** Every member of a request to `/v1/embeddings` and how it is treated. */
export const EMBEDDINGS_MEMBERS: readonly MemberRule[] = [
  mapped('model', 'the route selector'),
  mapped('input', '`input`: a text, a list of texts, a list of token ids, or a list of such lists'),
  mapped(
    'encoding_format',
    '`encoding_format`; answers come as it says, whatever the provider sends',
  ),
  mapped('dimensions', '`dimensions`, on routes whose `embedding.dimensions` is true'),
  mapped('user', '`user`'),
  mapped('failover', '`failover`, as on chat completions'),
  mapped('attestation', 'what the provider must meet; never forwarded'),
]

export const EMBEDDINGS_RULES = ruleTable(EMBEDDINGS_MEMBERS)
