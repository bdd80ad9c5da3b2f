import { ruleTable, type MemberRule } from '../completion/member-rules.ts'

/** Every member of a request to `/v1/embeddings` and what becomes of it. */
export const EMBEDDINGS_MEMBERS: readonly MemberRule[] = [
  { member: 'model', becomes: 'mapped', note: 'the route selector' },
  {
    member: 'input',
    becomes: 'mapped',
    note: '`input`: a text, a list of texts, a list of token ids, or a list of such lists',
  },
  {
    member: 'encoding_format',
    becomes: 'mapped',
    note: '`encoding_format`; answers come as it says, whatever the provider sends',
  },
  {
    member: 'dimensions',
    becomes: 'mapped',
    note: '`dimensions`, on routes whose `embedding.dimensions` is true',
  },
  { member: 'user', becomes: 'mapped', note: '`user`' },
  { member: 'failover', becomes: 'mapped', note: '`failover`, as on chat completions' },
]

export const EMBEDDINGS_RULES = ruleTable(EMBEDDINGS_MEMBERS)
