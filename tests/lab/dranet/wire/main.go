// Copyright: (c) 2026, The rdma.k8s authors
// GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Command wire speaks to a provider with DRANET's own webhook client and prints what that client understood.
//
// Usage: wire URL < calls. Each line of the input is a call: {"call": "GetProfileConfig", "device": {...},
// "claim_uid": "...", "config": {...}}; each line of the output is its result: {"result": ...} or {"error": "..."}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/dranet/pkg/apis"
	"sigs.k8s.io/dranet/pkg/cloudprovider"
	"sigs.k8s.io/dranet/pkg/cloudprovider/webhook"
)

type call struct {
	Call     string                          `json:"call"`
	Device   cloudprovider.DeviceIdentifiers `json:"device"`
	ClaimUID types.UID                       `json:"claim_uid"`
	Config   *apis.NetworkConfig             `json:"config"`
}

func ask(provider *webhook.WebhookProvider, wanted call) (any, error) {
	switch wanted.Call {
	case "GetDeviceAttributes":
		return provider.GetDeviceAttributes(wanted.Device), nil
	case "GetDeviceConfig":
		return provider.GetDeviceConfig(wanted.Device), nil
	case "GetProfileConfig":
		return provider.GetProfileConfig(wanted.Device, wanted.ClaimUID, wanted.Config)
	case "ReleaseProfileConfig":
		return nil, provider.ReleaseProfileConfig(wanted.Device, wanted.ClaimUID, wanted.Config)
	case "Capabilities":
		return map[string]bool{"cloud": provider.HasCloudProvider(), "profile": provider.HasProfileProvider()}, nil
	case "Merge":
		// What the driver does with the device's configuration and a claim before it asks for the profile.
		return apis.MergeNetworkConfig(wanted.Config, provider.GetDeviceConfig(wanted.Device)), nil
	}
	return nil, fmt.Errorf("unknown call %q", wanted.Call)
}

func run(url string) error {
	ctx := context.Background()
	if !webhook.OnWebhook(ctx, url) {
		return fmt.Errorf("no webhook at %s", url)
	}
	provider, err := webhook.NewWebhookProvider(ctx, url)
	if err != nil {
		return err
	}
	output := json.NewEncoder(os.Stdout)
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var wanted call
		if err := json.Unmarshal(input.Bytes(), &wanted); err != nil {
			return err
		}
		result, err := ask(provider, wanted)
		told := map[string]any{"result": result}
		if err != nil {
			told = map[string]any{"error": err.Error()}
		}
		if err := output.Encode(told); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: wire URL < calls")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
