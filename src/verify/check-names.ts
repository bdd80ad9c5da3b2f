/** Every check this library makes, with what it proves. The names are part of the interface of `--json`. */
export const PROVES = {
  // The certificate chain of the chip.
  certificate_chain: 'the chip key is certified through one authority by one root',
  ark_pinned: "the root is AMD's own, known beforehand and not taken from the sender",
  simulated_platform: 'nothing: no hardware stands behind a simulated platform',
  ark_signature: 'the root certificate is intact',
  ask_signature: 'the root vouches for the authority',
  vek_signature: 'the authority vouches for the chip key',
  certificate_validity: 'every certificate is within its dates',
  certificate_roles: 'only authorities issue certificates',
  certificate_keys: 'every key is of the kind and strength AMD uses',
  revocation: 'AMD has not revoked the authority',
  vek_extensions: 'the certificate says which chip and firmware the key belongs to',

  // The report and the chip it comes from.
  report_version: 'the report has the fields this policy relies on',
  report_signature: 'the firmware of that chip made this report, unchanged',
  product: 'chip, certificate and report are of one generation',
  signing_key: 'the report names the kind of key that signed it',
  chip_key_not_masked: 'the host did not withhold the chip key',
  chip_id: 'the certificate is of the very chip that made the report',
  vlek_csp: 'the cloud provider of the loaded key is one that is accepted',
  reported_tcb: 'the key is derived for the firmware the report states',
  tcb_order: 'the stated firmware levels do not contradict each other',
  tcb_floor: 'the firmware has the security fixes that are asked for',
  launch_tcb_floor: 'it had them when the guest was started',
  firmware_version: 'the firmware that cannot be rolled back is recent enough',
  firmware_committed: 'the running firmware is not a provisional one',

  // The guest.
  debug_disabled: 'the host cannot read the memory of the guest',
  migration_disabled: 'the guest cannot be moved by a migration agent',
  policy_form: 'the guest policy is one this library understands in full',
  policy_abi: 'the guest asked for a recent enough firmware interface',
  smt: 'simultaneous threads are off where that is asked for',
  cxl: 'no memory behind CXL is used for the guest',
  single_socket: 'the guest runs on one socket, where that is asked for',
  memory_xts: 'memory is encrypted with AES-256 in XTS mode, where that is asked for',
  ciphertext_hiding: 'the host cannot read the ciphertext of the guest, where that is asked for',
  vmpl: 'the report was asked for at the expected privilege level',
  platform_info: 'the platform has the protections that are asked for',
  guest_svn: 'the guest is not an outdated one',
  mitigations: 'the firmware mitigations that are asked for were in force',
  id_key: 'the launch was authorised by an accepted key',
  measurement_present: 'the report measures a guest at all',

  // The trust bundle and the manifest.
  trust_bundle_header: 'the bundle is a bundle, and chooses neither algorithm nor key',
  trust_bundle_signature: 'the holder of the release root signed this bundle',
  trust_bundle_dates: 'the bundle is in force',
  trust_bundle_version: 'nobody put an older or a forked bundle in its place',
  trust_bundle_environment: 'the bundle is meant for this environment',
  trust_bundle_origin: 'the bundle comes from the pinned address',
  manifest_key: 'the key that must sign manifests is in force and not revoked',
  manifest_header: 'the manifest is a manifest, and chooses neither algorithm nor key',
  manifest_signature: 'the release key signed this manifest',
  manifest_workload: 'the manifest describes the workload of the envelope',
  workload_identity_tag: 'the tag names exactly this manifest',

  // The public record of releases.
  trust_bundle_logged: 'the bundle is public: a log that witnesses watch has it',
  manifest_logged: 'the manifest is public: a log that witnesses watch has it',

  // The envelope.
  freshness: "by the operator's clock, the envelope is no older than it may be",
  vcek_chain: 'the envelope brings the certificates of its chip',
  report_data: 'the hardware vouches for this TLS key and this release',
  report_data_binding:
    'the hardware vouches for the receipt key, and for the configuration that is named',
  receipt_key: 'the vouched-for receipt key is the expected one',
  nonce: 'the report was made after the nonce was chosen',
  tls_key: 'the connection ends inside the enclave',
  measurement_allowed: 'the release root accepts this guest for this workload and release',
  not_revoked: 'the release root has withdrawn neither guest, release nor receipt key',

  // The receipt.
  receipt_header: 'the receipt is a receipt, and chooses neither algorithm nor key',
  receipt_key_known: 'the router published the signing key, once and for this use',
  receipt_signature: 'the router signed this receipt, unchanged',
  receipt_id: 'it is the receipt that was asked for',
  endpoint: 'the exchange was one with this front door',
  receipt_time: 'it was issued while its key was in use, and not in the future',
  configuration: 'the router that answered had this configuration in force',
  receipt_key_context: 'the receipt names the key that signed it',
  requested_route: 'the router understood which route was asked for',
  routed_model: 'the answer came by the expected route',
  client_request_digest: 'the request is the one that the client sent',
  client_response_digest: 'the answer is the one that the client got',
  request_digest: 'the bytes are those that went to the provider',
  response_digest: 'the bytes are those that came from the provider',
  constraints: 'the provider was attested as the request, or its API key, required',
  hop_verified: 'the router had verified this hop when it signed',
  hop_evidence: 'the evidence named in the receipt is at hand, unchanged',
  hop_age: 'the evidence was in force for the exchange',
  provider_policy:
    'the evidence holds under your policy, judged by the code that the router judges by',
  message_signature: 'the enclave signed these very bytes of request and answer',
  hop_consistent: 'what the receipt says of the hop is what its evidence says',
  newest_bundle: 'the newest bundle at hand tells what has been revoked since',
  provider_attested: 'the provider ran in an enclave, judged again here under your own policy',
} as const

export type CheckName = keyof typeof PROVES
