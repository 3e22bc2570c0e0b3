"""The six kinds of work of the built-in set, two to a workspace, and what the two of a workspace share."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ranked_ledger.evals.builtin_words import Part, PartKind, Trade


def _parts(kind: PartKind, *names: tuple[str, str]) -> tuple[Part, ...]:
    return tuple(Part(name, alias, kind) for name, alias in names)


_BILLING: Final = Trade(
    task="invoice-service",
    place="the invoice service",
    place_alias="the billing service",
    who=("merchants", "bookkeepers", "resellers"),
    mishaps=("the double charges of March", "the year-end close", "the currency mix-up"),
    parts=_parts(
        "service",
        ("the card gateway", "the card processor"),
        ("the tax engine", "the tax calculation service"),
        ("the dunning mailer", "the sender of reminders"),
        ("the bank statement fetcher", "the bank feed"),
        ("the proration calculator", "the pricing of partial months"),
        ("the PDF renderer", "the document rendering"),
    )
    + _parts(
        "data",
        ("the invoice ledger", "the books of invoices"),
        ("the price list", "the catalog of prices"),
        ("the refund log", "the list of money given back"),
        ("the exchange rate table", "the currency conversion list"),
        ("the credit note archive", "the store of credit notes"),
    )
    + _parts(
        "people",
        ("the month-end close", "closing the month"),
        ("the chargeback handling", "dealing with disputed payments"),
        ("the discount approval", "granting rebates"),
        ("the pricing review", "revisiting the prices"),
    ),
    details=(
        "Amounts stay in the smallest unit of the currency throughout.",
        "Test merchants are left out of it.",
        "Invoices that are final already are not touched.",
        "It holds for subscriptions and for single sales.",
        "Finance has been told and did not object.",
        "The sandbox behaves in the same way.",
        "Partial payments follow the same path.",
        "Take it up again when the second legal entity opens.",
    ),
    notes=(
        "Ran the sample invoices through {part} again; every total agreed, so carry on with the next item.",
        "Put the fix for rounding in {part} before the cleanup, because the cleanup can wait.",
        "Left the old log lines of {part} in place for one more week.",
        "Asked finance for three more examples about {part} and continue meanwhile.",
    ),
)
_PIPELINE: Final = Trade(
    task="usage-pipeline",
    place="the usage pipeline",
    place_alias="the metering pipeline",
    who=("analysts", "account managers", "data scientists"),
    mishaps=("the lost Sunday", "the time zone change", "the schema drift in May"),
    parts=_parts(
        "service",
        ("the ingestion endpoint", "the intake API"),
        ("the stream processor", "the streaming job"),
        ("the workflow scheduler", "the job orchestrator"),
        ("the metrics API", "the endpoint for figures"),
        ("the geocoder", "the address lookup"),
        ("the anomaly detector", "the outlier detection"),
    )
    + _parts(
        "data",
        ("the raw event archive", "the store of untouched events"),
        ("the hourly usage table", "the usage per hour"),
        ("the device registry", "the inventory of devices"),
        ("the session table", "the table of visits"),
        ("the feature store", "the store of model inputs"),
    )
    + _parts(
        "people",
        ("the schema change process", "altering a schema"),
        ("the backfill duty", "the reprocessing shifts"),
        ("the dashboard review", "going through the dashboards"),
        ("the data quality round", "the quality meeting"),
    ),
    details=(
        "Late events up to two days are still counted.",
        "Times are in UTC from end to end.",
        "The old path runs beside it for two weeks.",
        "Sampling stays off for paying accounts.",
        "Costs were estimated at forty dollars a day.",
        "Partitions of the current day are excluded.",
        "The notebook with the figures is linked in the ticket.",
        "Only the European region does so for now.",
    ),
    notes=(
        "Compared two days of output from {part} with the old job; counts match, go on.",
        "Renamed the columns of {part} in the notebook for readability, no effect elsewhere.",
        "Restarted {part} with more memory and moved on to the next failing partition.",
        "Skipped the slow test of {part} today, since nothing near it was changed.",
    ),
)
_MOBILE: Final = Trade(
    task="courier-app",
    place="the courier app",
    place_alias="the app for couriers",
    who=("couriers", "shift leads", "new drivers"),
    mishaps=("the dead batteries of July", "the app store rejection", "the tunnel incident"),
    parts=_parts(
        "service",
        ("the push notifier", "the sender of push messages"),
        ("the map view", "the map on the screen"),
        ("the barcode scanner", "the parcel scanning"),
        ("the offline sync", "the synchronization without network"),
        ("the crash reporter", "the tool for crash reports"),
        ("the photo uploader", "the picture upload"),
    )
    + _parts(
        "data",
        ("the delivery queue", "the list of open stops"),
        ("the delivery photo album", "the collection of proof pictures"),
        ("the translation set", "the text in other languages"),
        ("the location trail", "the track of positions"),
        ("the settings profile", "the file of preferences"),
    )
    + _parts(
        "people",
        ("the beta program", "the test by early users"),
        ("the app store submission", "handing it in to the stores"),
        ("the accessibility audit", "checking for accessibility"),
        ("the release note writing", "the text about what is new"),
    ),
    details=(
        "Phones older than four years are served by the light screen.",
        "Dark mode gets the same treatment.",
        "It must work with gloves on.",
        "Battery use was measured over a whole shift.",
        "Tablets follow in the next version.",
        "The minimum version of the system stays as it is.",
        "Strings go to the translators on Friday.",
        "Roaming counts as no network here.",
    ),
    notes=(
        "Tried {part} on the cheap test phone; scrolling is fine, so continue with the next screen.",
        "Moved the spacing of {part} by four points as the mockup shows.",
        "Kept the flaky interface test for {part} but marked it, to look at on Monday.",
        "Chose the shorter label near {part}; the long one wraps in German.",
    ),
)
_DISPATCH: Final = Trade(
    task="dispatch-planner",
    place="the dispatch planner",
    place_alias="the route planning back end",
    who=("dispatchers", "depot managers", "shop owners"),
    mishaps=("the snow day", "the strike in the north", "the doubled tours"),
    parts=_parts(
        "service",
        ("the route solver", "the tour optimizer"),
        ("the traffic feed", "the road conditions service"),
        ("the arrival estimator", "the prediction of arrival times"),
        ("the driver matcher", "the assignment of drivers"),
        ("the SMS sender", "the text message gateway"),
        ("the address checker", "the address verification"),
    )
    + _parts(
        "data",
        ("the road graph", "the street network"),
        ("the shift plan", "the roster"),
        ("the tour history", "the list of past tours"),
        ("the depot stock list", "the inventory of the depot"),
        ("the vehicle file", "the record of the fleet"),
    )
    + _parts(
        "people",
        ("the replanning during a shift", "changing tours at short notice"),
        ("the depot briefing", "the meeting at the depot"),
        ("the complaint desk", "answering complaints"),
        ("the carrier onboarding", "taking on new carriers"),
    ),
    details=(
        "Refrigerated goods are planned apart.",
        "The old planner stays reachable until spring.",
        "Holidays are taken from the regional calendar.",
        "Two depots try it first, the others follow.",
        "Bicycles are treated as vehicles of their own.",
        "Manual overrides win in any case.",
        "Simulated on last November it saved six percent.",
        "Night tours keep their own parameters.",
    ),
    notes=(
        "Replayed Monday's orders against {part}; two stops moved, nobody would notice, go ahead.",
        "Wrote a small script to watch {part} overnight, thrown away afterwards.",
        "Split the long function behind {part} in two before changing anything.",
        "Waited for the depot's answer on {part}, and did the logging meanwhile.",
    ),
)
_MIGRATION: Final = Trade(
    task="cloud-move",
    place="the move to the cloud",
    place_alias="the infrastructure migration",
    who=("developers", "the night shift", "tenant admins"),
    mishaps=("the expired certificate", "the full disk in October", "the failed cutover"),
    parts=_parts(
        "service",
        ("the load balancer", "the balancing of traffic"),
        ("the DNS zone", "the name server setup"),
        ("the build runner pool", "the CI machine group"),
        ("the VPN bridge", "the tunnel between the sites"),
        ("the container registry", "the image registry"),
        ("the log shipper", "the forwarding of logs"),
    )
    + _parts(
        "data",
        ("the main database", "the primary database"),
        ("the backup set", "the collection of backups"),
        ("the file share", "the network drive"),
        ("the Terraform state", "the infrastructure state"),
        ("the asset inventory", "the list of machines"),
    )
    + _parts(
        "people",
        ("the cutover rehearsal", "practicing the switch"),
        ("the change window", "the maintenance slot"),
        ("the on-call handover", "passing on the pager"),
        ("the cost review", "looking at the spending"),
    ),
    details=(
        "The old data center stays powered until the end of the quarter.",
        "Two zones are enough, a third is not paid for.",
        "Tags carry the cost center from the first day.",
        "Test systems are moved before anything that customers see.",
        "The firewall rules were copied one to one.",
        "Rollback remains possible for seventy-two hours.",
        "Nothing is clicked by hand in the console.",
        "Tenants with their own contract are handled last.",
    ),
    notes=(
        "Planned the change to {part} and read the diff twice; only tags differ, apply it.",
        "Raised the verbosity of {part} for the afternoon, then put it back.",
        "Drained one node near {part} to see what happens, and nothing did.",
        "Postponed the renaming in {part}; it would touch forty files for no gain.",
    ),
)
_HIRING: Final = Trade(
    task="hiring-agent",
    place="the hiring agent",
    place_alias="the recruiting assistant",
    who=("candidates", "recruiters", "team leads"),
    mishaps=("the mail sent to everybody", "the lost applications of spring", "the biased shortlist"),
    parts=_parts(
        "service",
        ("the resume parser", "the reading of resumes"),
        ("the interview scheduler", "the booking of interviews"),
        ("the job board connector", "the link to job boards"),
        ("the reply drafter", "the drafting of answers"),
        ("the coding exercise runner", "the programming test"),
        ("the reference checker", "the checking of references"),
    )
    + _parts(
        "data",
        ("the applicant file", "the dossier of an applicant"),
        ("the scorecard sheet", "the table of interview ratings"),
        ("the talent pool", "the list of people to ask again"),
        ("the question bank", "the collection of interview questions"),
        ("the salary band table", "the list of pay ranges"),
    )
    + _parts(
        "people",
        ("the shortlist meeting", "agreeing on a shortlist"),
        ("the offer process", "making an offer"),
        ("the rejection mailing", "turning people down"),
        ("the interviewer training", "teaching the interviewers"),
    ),
    details=(
        "The model sees neither names nor photos.",
        "A person reads every message before it goes out.",
        "Internal applications take the same road.",
        "The works council has agreed for a year.",
        "Interns are out of scope.",
        "Wording follows the tone guide.",
        "Tried on forty old cases first.",
        "Agencies get the short version.",
    ),
    notes=(
        "Reworded the prompt around {part}; answers got shorter, so keep it and go on.",
        "Read ten outputs of {part} by eye; one was odd, noted, no action.",
        "Used the cheaper model for {part} in this run, as quality hardly matters here.",
        "Asked the recruiter about {part}, got no answer yet, took the next ticket.",
    ),
)

# Two tasks of a workspace decide about these as well, each for itself: that is where look-alikes come from.
WORKSPACES: Final = MappingProxyType[str, tuple[tuple[Trade, Trade], tuple[Part, ...]]](
    {
        "metered": (
            (_BILLING, _PIPELINE),
            _parts(
                "service", ("the event bus", "the message broker"), ("the admin console", "the back office")
            )
            + _parts("data", ("the customer directory", "the master list of customers")),
        ),
        "parcels": (
            (_MOBILE, _DISPATCH),
            _parts(
                "service",
                ("the order API", "the interface for orders"),
                ("the chat relay", "the chat service"),
            )
            + _parts("data", ("the address book", "the list of known addresses")),
        ),
        "back-office": (
            (_MIGRATION, _HIRING),
            _parts(
                "service",
                ("the secrets vault", "the store of secrets"),
                ("the mail relay", "the outgoing mail"),
            )
            + _parts("data", ("the activity log", "the audit trail")),
        ),
    }
)
