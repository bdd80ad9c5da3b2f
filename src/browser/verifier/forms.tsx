import { DropZone } from '../parts/drop-zone.tsx'
import {
  CheckField,
  FileField,
  RootField,
  sortFiles,
  TextField,
  type FieldProps,
} from './fields.tsx'

/** The fields that decide which routers are accepted, the same for the verification of a router and of a receipt. */
function TrustFields(props: FieldProps) {
  return (
    <>
      <TextField
        {...props}
        name="router"
        type="url"
        label="Router"
        placeholder="https://router.example"
        hint="The only address that this page ever speaks to."
      />
      <RootField {...props} />
    </>
  )
}

function DemandFields(props: FieldProps) {
  return (
    <details class="more">
      <summary>What you demand</summary>
      <TextField
        {...props}
        name="environment"
        label="Environment"
        hint="The trust bundle must be made for it."
      />
      <CheckField
        {...props}
        name="requireCrl"
        label="Refuse evidence without AMD's revocation list"
        hint="The router brings the list along; AMD's root has signed it."
      />
      <CheckField
        {...props}
        name="allowSimulated"
        label="Accept a simulated platform"
        hint="For trying things out with a local stack. Nothing is proven about any machine then."
      />
      <FileField
        {...props}
        name="crl"
        label="AMD's revocation list of today"
        hint="In DER, from kdsintf.amd.com. Counts in place of the one that the router shows."
      />
      <FileField
        {...props}
        name="logPolicy"
        label="Log policy"
        hint="The public log that must have bundle and manifest, and its witnesses (JSON)."
      />
    </details>
  )
}

export function RouterForm(props: FieldProps) {
  return (
    <>
      <p class="lead">
        Is there a genuine enclave behind this address, and does it run a release that its release
        root accepts? This page asks the router for a report made for a random number of its own,
        and checks every link from there to AMD's root.
      </p>
      <TrustFields {...props} />
      <DemandFields {...props} />
    </>
  )
}

export function ReceiptForm(props: FieldProps) {
  const { inputs, change } = props
  const without = (removed: { readonly name: string }) => ({
    evidence: inputs.evidence.filter(({ name }) => name !== removed.name),
  })
  return (
    <>
      <p class="lead">
        A receipt is a router's signed statement about one answer. This page checks who signed it,
        in which enclave the key lives, and what it says about which request and answer.
      </p>
      <TextField
        {...props}
        name="receipt"
        label="Receipt"
        rows={5}
        placeholder='{"id": "…", "receipt": "eyJ…"} or the JWS alone'
        hint="Paste the answer of GET /v1/receipts/{id}, or drop it below."
      />
      <div class="field">
        <DropZone
          multiple
          label="Drop files here, or choose them"
          hint="Receipt, evidence, key set, trust bundle, release root, provider policy: each is recognised by its content. What the router publishes need not be brought."
          files={inputs.evidence}
          onFiles={(files) => change(sortFiles(inputs, files))}
          onRemove={(removed) => change(without(removed))}
        />
      </div>
      <BodyFields {...props} />
      <TrustFields {...props} />
      <RareFields {...props} />
      <DemandFields {...props} />
    </>
  )
}

/** The bodies that are compared with the receipt. */
function BodyFields(props: FieldProps) {
  return (
    <div class="pair">
      <FileField
        {...props}
        name="request"
        label="Your request"
        hint="The body exactly as you sent it: the receipt must be about it."
      />
      <FileField
        {...props}
        name="response"
        label="The answer that you got"
        hint="The body exactly as you got it; a stream may be given as it came."
      />
    </div>
  )
}

function RareFields(props: FieldProps) {
  return (
    <details class="more">
      <summary>Provider, offline files, and receipts by their id</summary>
      <TextField
        {...props}
        name="providerPolicy"
        rows={4}
        label="Provider policy"
        hint="JSON as in docs/egress.md, or the provider's release root: its hop is judged again under your policy. Without it the router's record is reported as such."
      />
      <FileField
        {...props}
        name="keys"
        label="Key set"
        hint="/.well-known/jwks.json of the router, to verify without asking it."
      />
      <FileField
        {...props}
        name="bundle"
        label="Newer trust bundle"
        hint="For what has been revoked since."
      />
      <TextField
        {...props}
        name="receiptId"
        label="Receipt id"
        hint="Has the router asked for the receipt, with the key below."
      />
      <TextField
        {...props}
        name="apiKey"
        type="password"
        label="API key"
        hint="Sent to the router that you named and nowhere else, and never kept. Needed for a receipt by its id, and for evidence of providers."
      />
    </details>
  )
}
